#!/bin/sh
# Grade the submission with smith's own grader, which lies in lib/ as it was at export. What it decides goes to
# /logs/verifier/reward.json, and in full to /logs/verifier/grade.json.
set -eu
tests=$(dirname "$0")
unset PYTHONHOME PYTHONSTARTUP
PYTHONPATH=$tests/lib:/opt/smith/site PYTHONDONTWRITEBYTECODE=1 \
    exec "${SMITH_GRADER_PYTHON:-python3}" -P -s -m smith.export.harbor_verifier --tests "$tests"
