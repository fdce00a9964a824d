#!/usr/bin/env bash
# What make interop needs beside the Python environment, each part once: fetched into .cache/interop (or $INTEROP_CACHE).
#
#   setup.sh toolchains              installs by apt-get what the machine lacks: a JDK, Maven, Go, Node, Cargo, Chromium, tshark, Kerberos, debootstrap
#   setup.sh PART...                 python java old_java old_streams streams kafka spark go js rust registry kerberos: what that part needs
#   setup.sh all                     both
#   setup.sh ecosystem/PART/NAME     what a program of tests/ecosystem needs: python/quixstreams, java/connect
#
# A part is fetched again only when its list of dependencies changes. Registries are whatever the tools are set up with.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${INTEROP_CACHE:-$here/../../.cache/interop}
mkdir -p "$cache"; cache=$(cd "$cache" && pwd)
echo '*' > "$cache/.gitignore"

# Maven and npm's node-gyp run for seconds: what they start need not be optimized.
export MAVEN_OPTS=${MAVEN_OPTS:--XX:+UseSerialGC -XX:TieredStopAtLevel=1}

KAFKA_VERSION=4.3.1
JAVA_CLIENTS="4.4.0 4.3.1 3.9.1 2.8.2"
SPARK_VERSION=4.2.0    # the newest of Spark's Kafka source that registries have; it runs on 4.2 and 4.3
OLD_JAVA_CLIENTS="2.4.1 1.1.1 0.11.0.3"    # for tests/clients/compatibility, as are
OLD_STREAMS="2.5.1 2.6.3"
NEW_STREAMS="4.4.0"    # beside those among Kafka's own jars

say() { echo "setup: $*" >&2; }

# once PART FILES... -- COMMAND: run it unless it has run to its end with these files.
# The lock and the stamp stand beside the part, not in it: a script that makes the part again may empty its folder.
once() {
    local part=$1 files=(); shift
    while [ "$1" != -- ]; do files+=("$1"); shift; done; shift
    local mark=$cache/ready/${part//\//-}
    local stamp; stamp="$mark-$(cat "${files[@]}" | sha256sum | cut -c1-16)"
    mkdir -p "$cache/$part" "$cache/ready"
    (
        flock 9    # two drivers may ask for the same part at once
        [ -e "$stamp" ] && exit 0
        say "$*"; "$@" >&2; touch "$stamp"
    ) 9> "$mark.lock"
}

# ---------------------------------------------------------------- toolchains

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

present() { command -v "$1" > /dev/null; }
candidate() { apt-cache policy "$1" | sed -n 's/.*Candidate: \([^(].*\)/\1/p'; }

toolchains() {
    local tool lacks=()
    for tool in javac mvn go node npm cargo g++ make chromium chromedriver tshark kinit; do present $tool || lacks+=($tool); done
    [ -x /usr/sbin/krb5kdc ] || lacks+=(krb5-kdc)
    [ -x /usr/sbin/kadmin.local ] || lacks+=(krb5-admin-server)
    [ -x /usr/sbin/debootstrap ] || lacks+=(debootstrap)
    for tool in zlib.h zstd.h openssl/ssl.h gssapi/gssapi.h; do [ -e "/usr/include/$tool" ] || lacks+=($tool); done
    local headers="import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path('include') + '/Python.h'))"
    python3 -c "$headers" || lacks+=(python3-dev)
    [ ${#lacks[@]} = 0 ] && return
    present apt-get || { say "lacks ${lacks[*]}, and has no apt-get"; return 1; }
    as_root apt-get update -q >&2
    local packages=()
    for tool in "${lacks[@]}"; do
        case $tool in
            javac) packages+=("$([ -n "$(candidate openjdk-17-jdk-headless)" ] && echo openjdk-17-jdk-headless || echo default-jdk-headless)") ;;
            mvn) packages+=(maven) ;;
            go) packages+=(golang-go) ;;
            node) packages+=(nodejs) ;;
            chromedriver) packages+=(chromium-driver) ;;
            # Debian 12's own Rust is of 2022; cargo-web is the one that its browsers are built with.
            cargo) if [[ $(candidate cargo) == 0.* ]]; then packages+=(cargo-web rustc-web); else packages+=(cargo); fi ;;
            zlib.h) packages+=(zlib1g-dev) ;;
            zstd.h) packages+=(libzstd-dev) ;;
            openssl/ssl.h) packages+=(libssl-dev) ;;
            kinit) packages+=(krb5-user) ;;
            gssapi/gssapi.h) packages+=(libkrb5-dev) ;;
            *) packages+=("$tool") ;;
        esac
    done
    say "apt-get install ${packages[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}" >&2
}

# ---------------------------------------------------------------- python

# A Python that wheels of 2023 were built for.
old_python() {
    local each
    for each in python3 python3.12 python3.11 python3.10 python3.9 python3.8; do
        if command -v $each > /dev/null && $each -c 'import sys; sys.exit(not (3, 8) <= sys.version_info < (3, 13))'; then
            echo $each; return
        fi
    done
    say "confluent-kafka 2.3 has wheels for Python 3.8 to 3.12, and none of them is here"; return 1
}

environment() {    # environment NAME PYTHON
    "$2" -m venv --clear "$cache/python/$1"
    "$cache/python/$1/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$here/python/$1.txt"
}

python() {
    once python/confluent-2.3 "$here/python/confluent-2.3.txt" -- environment confluent-2.3 "$(old_python)"
    once python/kafka-python "$here/python/kafka-python.txt" -- environment kafka-python python3
}

# ---------------------------------------------------------------- java

java() {
    local version
    for version in $JAVA_CLIENTS; do "$here/../../tools/fetch_kafka.sh" "$cache/java/clients-$version" clients "$version"; done
}

old_java() {
    local version
    for version in $OLD_JAVA_CLIENTS; do "$here/../../tools/fetch_kafka.sh" "$cache/java/clients-$version" clients "$version"; done
}

old_streams() {
    local version
    for version in $OLD_STREAMS; do "$here/../../tools/fetch_kafka.sh" "$cache/java/streams-$version" streams "$version"; done
}

streams() {
    local version
    kafka
    for version in $NEW_STREAMS; do "$here/../../tools/fetch_kafka.sh" "$cache/java/streams-$version" streams "$version"; done
}

kafka() {
    [ -n "${KAFKA_LIBS:-}" ] || "$here/../../tools/fetch_kafka.sh" "$cache/java/kafka-$KAFKA_VERSION" kafka $KAFKA_VERSION
}

spark() {
    "$here/../../tools/fetch_kafka.sh" "$cache/java/spark-$SPARK_VERSION" spark "$SPARK_VERSION"
}

# ---------------------------------------------------------------- go, js, rust

# The go that the module asks for: an older one is replaced by the toolchain module, which newer ones fetch by themselves.
go_modules() {
    local want; want=$(sed -n 's/^toolchain //p; s/^go /go/p' "$here/go/go.mod" | tail -1)
    if go version | grep -Eq ' go1\.([0-9]|1[0-9]|20)(\.| )'; then
        local module; module=golang.org/toolchain@v0.0.1-$want.$(go env GOOS)-$(go env GOARCH)
        local folder; folder=$(cd "$cache/go" && GOFLAGS=-mod=mod go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
        chmod -R u+x "$folder/bin" "$folder/pkg/tool"
        ln -sfn "$folder/bin/go" "$cache/go/go"
    else
        ln -sfn "$(command -v go)" "$cache/go/go"
    fi
    cd "$here/go" && GOTOOLCHAIN=auto "$cache/go/go" mod download
}

go_part() { once go "$here/go/go.mod" -- go_modules; }

js_modules() {
    local folder=$cache/js
    cp "$here/js/package.json" "$folder/"
    (cd "$folder" && npm install --no-package-lock --no-audit --no-fund --ignore-scripts)
    native_js "$folder/node_modules/@confluentinc/kafka-javascript"
}

# The binary that its authors publish, or else one built here from the sources in the package.
native_js() {
    cd "$1"
    if npx --no-install node-pre-gyp install > binary.log 2>&1; then return; fi
    say "the binary of @confluentinc/kafka-javascript cannot be fetched; building it"
    export CKJS_LINKING=dynamic CFLAGS=-O0 CXXFLAGS=-O0 MAKEFLAGS="-j$(nproc)" JOBS; JOBS=$(nproc)
    # The first run configures librdkafka, and stops where its makefile does not know the file that was made.
    npx --no-install node-pre-gyp install --build-from-source=@confluentinc/kafka-javascript > build.log 2>&1 \
        || make -C build BUILDTYPE=Release > build.log 2>&1 \
        || { tail -20 build.log >&2; say "@confluentinc/kafka-javascript cannot be built here; its steps are skipped"; }
}

js() { once js "$here/js/package.json" -- js_modules; }

rust_crates() {
    mkdir -p "$cache/build/rust/crate"
    cp -r "$here/rust/." "$cache/build/rust/crate/"
    cargo fetch --manifest-path "$cache/build/rust/crate/Cargo.toml"
}

rust() { once rust "$here/rust/Cargo.toml" -- rust_crates; }

# ---------------------------------------------------------------- clients of schema registries

registry_node() {
    cp "$registry_clients/node/package.json" "$cache/registry/node/"
    (cd "$cache/registry/node" && npm install --no-package-lock --no-audit --no-fund --ignore-scripts)
}

registry_go() { cd "$registry_clients/go" && go mod download; }

registry_java() {
    mvn --batch-mode --quiet --file "$registry_clients/java/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$cache/registry/java"
}

registry() {
    registry_clients=$here/../registry/clients
    once registry/node "$registry_clients/node/package.json" -- registry_node
    once registry/go "$registry_clients/go/go.mod" -- registry_go
    once registry/java "$registry_clients/java/pom.xml" -- registry_java
}

# ---------------------------------------------------------------- kerberos

# Built against the machine's libkrb5, so it is no part of the development environment.
kerberos() {
    local root=$here/../..
    once kerberos "$root/constraints.txt" -- \
        "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$root/constraints.txt" gssapi
}

# ---------------------------------------------------------------- software of tests/ecosystem

ecosystem_python() {
    python3 -m venv --clear "$1"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$2"
}

ecosystem_java() {
    mvn --batch-mode --quiet --file "$2" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$1"
}

ecosystem_quarkus() {    # quarkus FOLDER PROJECT: the application, built, in FOLDER/app
    rm -rf "$1/project"; cp -r "$2" "$1/project"
    mvn --batch-mode --quiet --file "$1/project/pom.xml" package
    rm -rf "$1/app"; mv "$1/project/target/quarkus-app" "$1/app"
}

ecosystem_debian() {
    dpkg -s "$1" > /dev/null 2>&1 && return
    as_root apt-get update -q >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$1" >&2
}

ecosystem_go() { (cd "$2" && go build -o "$1/" .); }

# ecosystem PART/NAME, where PART is debian (a package), python (a requirements file), java (a pom.xml) or go (a module).
ecosystem() {
    local at=$here/../ecosystem/$1 folder=$cache/ecosystem/$1
    case $1 in
        python/*) once "ecosystem/$1" "$at.txt" -- ecosystem_python "$folder" "$at.txt" ;;
        java/quarkus) once "ecosystem/$1" "$at/pom.xml" "$at"/src/main/*/* -- ecosystem_quarkus "$folder" "$at" ;;
        java/*) once "ecosystem/$1" "$at/pom.xml" -- ecosystem_java "$folder" "$at/pom.xml" ;;
        go/*) once "ecosystem/$1" "$at"/go.* "$at"/*.go -- ecosystem_go "$folder" "$at" ;;
        debian/*) ecosystem_debian "${1#*/}" ;;
        *) say "no such software: $1"; exit 2 ;;
    esac
}

# ----------------------------------------------------------------

[ $# -gt 0 ] || { sed -n 's/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed -n 2,10p; exit 2; }
for part in "$@"; do
    case $part in
        toolchains) toolchains ;;
        python | java | old_java | old_streams | streams | kafka | spark | js | rust | registry | kerberos) $part ;;
        go) go_part ;;
        ecosystem/*) ecosystem "${part#*/}" ;;
        all) toolchains; python; java; old_java; kafka; go_part; js; rust ;;
        *) say "no such part: $part"; exit 2 ;;
    esac
done
