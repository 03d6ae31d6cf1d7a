#!/bin/sh
# Builds the wheel, installs it with what the tests need, and runs them: test.sh [FOLDER], where FOLDER is the Maven
# project [default: ../../jvm]. PYTHON names the interpreter; it should be one of a virtual environment. SERAPHIM_BIN names
# the program; without it the tests that need it are skipped, and print a line that begins with SKIPPED.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
"$here/build_wheel.sh" "$@"
wheel=$(ls "$here"/dist/seraphim_spark-*.whl)
"$python" -m pip install --quiet --disable-pip-version-check "$wheel[pyspark,test]"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel"
cd "$here/tests"
exec "$python" -m pytest -q -rs -p no:cacheprovider
