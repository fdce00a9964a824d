# Understudy in a container: one process, no root, everything in memory unless UNDERSTUDY_DATA_DIR=/data.
# Any option of `understudy serve` is a variable: --as-version is UNDERSTUDY_AS_VERSION (docs/docker-and-ci.md).

FROM debian:trixie-slim AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE ./
COPY understudy understudy
COPY control_api control_api
COPY protocol protocol
COPY storage storage
COPY broker broker
COPY pipeline pipeline
COPY comparison comparison
COPY proxy proxy
COPY registry registry
COPY simulator simulator
COPY docs/specification docs/specification
# Compiled: what a produce, a fetch and a transaction pass (docs/inside/benchmarks.md). pip alone would compile twice, for the metadata too.
RUN python3 -m venv /tmp/build \
    && /tmp/build/bin/pip install --no-cache-dir build \
    && UNDERSTUDY_COMPILE=1 PIP_CONSTRAINT=/src/constraints.txt /tmp/build/bin/python -m build --wheel --outdir /tmp/dist . \
    && python3 -m venv /opt/understudy \
    && /opt/understudy/bin/pip install --no-cache-dir --constraint constraints.txt /tmp/dist/*.whl \
    && /opt/understudy/bin/pip uninstall --yes pip \
    && python3 -m compileall -q /opt/understudy

FROM debian:trixie-slim
LABEL org.opencontainers.image.title="Understudy" \
      org.opencontainers.image.description="A stand-in for an Apache Kafka cluster: real wire protocol, one process, steerable" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --home-dir /var/lib/understudy understudy \
    && install --directory --owner=10001 --group=10001 /data /run/understudy
COPY --from=build /opt/understudy /opt/understudy
COPY tools/health-check /usr/local/bin/understudy-health
ENV PATH=/opt/understudy/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    UNDERSTUDY_HOST=0.0.0.0 \
    UNDERSTUDY_PORT=9092 \
    UNDERSTUDY_CONTROL_PORT=9099 \
    UNDERSTUDY_FOR_TESTS=true \
    UNDERSTUDY_READY_FILE=/run/understudy/ready.json
USER 10001
WORKDIR /var/lib/understudy
VOLUME /data
EXPOSE 9092 9099
# Often, because Docker before 25, Podman and buildah do not know --start-interval, and users wait for the first check.
HEALTHCHECK --interval=2s --timeout=3s --start-period=10s --retries=5 CMD ["understudy-health"]
ENTRYPOINT ["understudy"]
CMD ["serve"]
