#!/bin/sh
# Builds dist/seraphim_spark-*.whl with the jars inside: build_wheel.sh [FOLDER], where FOLDER is the Maven project
# [default: ../../jvm]. PYTHON names the interpreter, which has pip.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/copy_jars.sh" "$@"
rm -f "$here"/dist/seraphim_spark-*.whl
"${PYTHON:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$here/dist" "$here"
