#!/bin/sh
# Copies the jars into the package: copy_jars.sh [FOLDER], where FOLDER is the Maven project [default: ../../jvm].
set -eu
here=$(cd "$(dirname "$0")" && pwd)
maven=${1:-$here/../../jvm}
jars=$here/src/seraphim_spark/jars

# Prints the one jar that a pattern matches, without the jars of tests and sources.
one_jar() {
  found=$(ls $1 2>/dev/null | grep -v -e '-tests\.jar$' -e '-sources\.jar$' || true)
  if [ "$(printf '%s' "$found" | grep -c .)" != 1 ]; then
    echo "expected one jar $1, found: ${found:-none}; run 'mvn package -DskipTests' in $maven" >&2
    return 1
  fi
  printf '%s\n' "$found"
}

client=$(one_jar "$maven/client/target/seraphim-client-*.jar")
spark=$(one_jar "$maven/spark/target/seraphim-spark_2.13-*.jar")
mkdir -p "$jars"
rm -f "$jars"/*.jar
cp "$client" "$spark" "$jars"

# The jar with the program, unless the program was not built: then the jar is almost empty.
program=$(find "$maven"/program/target -name 'seraphim-program-*.jar' -size +1M 2>/dev/null || true)
if [ -n "$program" ]; then
  cp "$program" "$jars"
else
  echo "the package has no program seraphim: run 'cargo build --release', and then 'mvn package' in $maven" >&2
fi
