# Understudy in a container: one process, no root, everything in memory unless UNDERSTUDY_DATA_DIR says otherwise.
# Any option of `understudy serve` is a variable: --as-version is UNDERSTUDY_AS_VERSION (docs/docker.md).

FROM debian:trixie-slim AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY understudy understudy
COPY protocol protocol
COPY storage storage
COPY broker broker
COPY pipeline pipeline
COPY comparison comparison
RUN python3 -m venv /opt/understudy \
    && /opt/understudy/bin/pip install --no-cache-dir --constraint constraints.txt . \
    && /opt/understudy/bin/pip uninstall --yes pip \
    && python3 -m compileall -q /opt/understudy

FROM debian:trixie-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home --home-dir /var/lib/understudy understudy
COPY --from=build /opt/understudy /opt/understudy
ENV PATH=/opt/understudy/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    UNDERSTUDY_HOST=0.0.0.0 \
    UNDERSTUDY_PORT=9092 \
    UNDERSTUDY_CONTROL_PORT=9099
USER 10001
WORKDIR /var/lib/understudy
EXPOSE 9092 9099
HEALTHCHECK --interval=5s --timeout=3s --start-period=3s --retries=3 CMD ["understudy", "ctl", "health"]
ENTRYPOINT ["understudy"]
CMD ["serve"]
