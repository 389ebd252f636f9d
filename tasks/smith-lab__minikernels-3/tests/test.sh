#!/bin/sh
# The expectations of a bundle live in its receipts, one a device; a bundle by itself says nothing about outcomes.
# So this script cannot reward anything yet: it says so and gives 0. Grade with: smith grade TASK PATCHFILE
set -eu
mkdir -p /logs/verifier
echo "no expectations in this bundle: grade it with 'smith grade'" >&2
echo '{"reward": 0}' > /logs/verifier/reward.json
