#!/usr/bin/env bash
# fetch_kafka.sh DIR [WHAT] [VERSION]: Apache Kafka's jars by Maven, once.
#
#   WHAT    kafka (default): the broker, the command-line tools and Streams; broker: the broker alone; clients: kafka-clients alone;
#           streams: Streams and its clients; spark: Spark's Kafka source and sink, with dependencies that are not in Spark
#   VERSION 4.3.1 (default); Spark's version if WHAT is spark
#
# Then `java -cp 'DIR/*' kafka.Kafka server.properties` starts a broker. Does nothing if DIR is complete.
set -euo pipefail
folder=${1:?a folder}; what=${2:-kafka}; version=${3:-4.3.1}
group=org.apache.kafka
case $what in
    kafka) artifacts="kafka_2.13 kafka-tools kafka-streams" ;;
    broker) artifacts="kafka_2.13" ;;
    clients) artifacts="kafka-clients" ;;
    streams) artifacts="kafka-streams" ;;
    spark)
        group=org.apache.spark; artifacts="spark-sql-kafka-0-10_2.13" ;;
    *) echo "fetch_kafka: kafka, broker, clients, streams or spark, not $what" >&2; exit 2 ;;
esac
[ -e "$folder/.complete-$what-$version" ] && exit 0
mkdir -p "$folder"; folder=$(cd "$folder" && pwd)
exec 9> "$folder/.lock"; flock 9
[ -e "$folder/.complete-$what-$version" ] && exit 0

project=$(mktemp -d); trap 'rm -rf "$project"' EXIT
# Spark's jars depend on much that Spark has already, and on other repositories: list only the missing dependencies.
alone=; [ $what = spark ] && alone="<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
dependency() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version>$alone</dependency>"; }
{
    echo '<project><modelVersion>4.0.0</modelVersion>'
    echo '<groupId>understudy</groupId><artifactId>interop</artifactId><version>1</version><dependencies>'
    for artifact in $artifacts; do dependency "$group" "$artifact" "$version"; done
    if [ $what = spark ]; then
        # The newest version in all registries; unchanged since.
        dependency org.apache.spark spark-token-provider-kafka-0-10_2.13 4.0.0
        dependency org.apache.kafka kafka-clients 3.9.1
        dependency org.apache.commons commons-pool2 2.12.1
    else
        dependency org.slf4j slf4j-simple 1.7.36
    fi
    echo '</dependencies></project>'
} > "$project/pom.xml"
mvn --batch-mode --quiet --file "$project/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$folder" >&2
touch "$folder/.complete-$what-$version"
