#!/usr/bin/env bash
# fetch_kafka.sh DIR [WHAT] [VERSION]: Apache Kafka's jars by Maven, once.
#
#   WHAT    kafka (default): the broker, the command-line tools and Streams; clients: kafka-clients alone
#   VERSION 4.3.1 (default)
#
# Then `java -cp 'DIR/*' kafka.Kafka server.properties` starts a broker. Nothing is done where DIR is complete.
set -euo pipefail
folder=${1:?a folder}; what=${2:-kafka}; version=${3:-4.3.1}
case $what in
    kafka) artifacts="kafka_2.13 kafka-tools kafka-streams" ;;
    clients) artifacts="kafka-clients" ;;
    *) echo "fetch_kafka: kafka or clients, not $what" >&2; exit 2 ;;
esac
[ -e "$folder/.complete-$what-$version" ] && exit 0
mkdir -p "$folder"; folder=$(cd "$folder" && pwd)
exec 9> "$folder/.lock"; flock 9
[ -e "$folder/.complete-$what-$version" ] && exit 0

project=$(mktemp -d); trap 'rm -rf "$project"' EXIT
dependency() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }
{
    echo '<project><modelVersion>4.0.0</modelVersion>'
    echo '<groupId>understudy</groupId><artifactId>interop</artifactId><version>1</version><dependencies>'
    for artifact in $artifacts; do dependency org.apache.kafka "$artifact" "$version"; done
    dependency org.slf4j slf4j-simple 1.7.36
    echo '</dependencies></project>'
} > "$project/pom.xml"
mvn --batch-mode --quiet --file "$project/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$folder" >&2
touch "$folder/.complete-$what-$version"
