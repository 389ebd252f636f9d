#!/bin/sh
# Apply the reference patch to the source in the working directory.
set -eu
exec git apply --whitespace=nowarn "$(dirname "$0")/reference.patch"
