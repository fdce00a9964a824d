#!/bin/sh
# Each night: export what is new to Parquet, then audit. For cron, see `crontab` beside this file.
#
# Usage: nightly.sh SOURCE LAKE REPORTS [OPTIONS OF EXPORT ...]
#   SOURCE   a broker's data directory, or HOST:PORT of a running cluster
#   LAKE     folder of the Parquet files, or a URI such as s3://bucket/lake
#   REPORTS  folder of the audits' reports
#
# The exit code is not 0 if the export failed or the audit found something; cron then sends what was printed.
set -eu
source=$1 lake=$2 reports=$3
shift 3
mkdir -p "$reports"

# One run at a time, also if the last night's is still busy.
exec 9> "$reports/lock"
flock --nonblock 9 || { echo "the run before is not over"; exit 75; }

# The first run makes the export, each later one continues it where the last one ended.
append=--append
[ -e "$lake/_manifest.json" ] || append=
understudy export "$source" "$lake" --quiet $append "$@"

report=$reports/$(date +%Y-%m-%d).xml
case $source in
    /*|.*) understudy audit "$source" --quiet --format junit --out "$report" ;;
    *) understudy audit "$source" --follow 1 --steps 3 ;;
esac
