# Two images. docs/deploy/README.md says how they are run.
#   docker build -t cairn .                            CPU: agent, server, the embedded policy; no torch
#   docker build -t cairn:gpu --target gpu .           the same with vLLM in the server's own process
ARG PYTHON=3.11-slim

# What both are made of: the sources that a wheel needs, and an environment that does not depend on its place.
FROM python:${PYTHON} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE cairn_search.py ./
COPY agent agent
COPY server server
COPY train train
COPY docs docs
RUN python -m venv /opt/cairn && /opt/cairn/bin/pip install --no-cache-dir '.[redis,postgres,otel]'

FROM build AS build-gpu
RUN /opt/cairn/bin/pip install --no-cache-dir '.[redis,postgres,otel,vllm]'

# What both do when they run: no root, nothing is written outside of /var/lib/cairn and /tmp.
FROM python:${PYTHON} AS base
RUN useradd --uid 10001 --user-group --home-dir /var/lib/cairn --create-home cairn
ENV PATH=/opt/cairn/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OMP_NUM_THREADS=1 \
    CAIRN_HOST=0.0.0.0 \
    CAIRN_PORT=8000 \
    CAIRN_LOG_FORMAT=json \
    CAIRN_STORE=/var/lib/cairn/cairn.db \
    CAIRN_CACHE=/var/lib/cairn/searches
WORKDIR /var/lib/cairn
VOLUME /var/lib/cairn
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=8)"]
CMD ["cairn", "serve"]

# A model of this process, on a CUDA device: docker run --gpus all … cairn:gpu cairn serve --policy vllm --model …
FROM base AS gpu
# Triton compiles with the system's compiler; whichever patch of it the base image's release has is right.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends gcc libc6-dev \
  && rm -rf /var/lib/apt/lists/*
COPY --from=build-gpu /opt/cairn /opt/cairn
ENV CAIRN_POLICY=vllm \
    HF_HOME=/var/lib/cairn/models \
    VLLM_CACHE_ROOT=/var/lib/cairn/vllm \
    TRITON_CACHE_DIR=/var/lib/cairn/triton
USER 10001:10001

# The last one is what a build without a target makes.
FROM base AS cpu
COPY --from=build /opt/cairn /opt/cairn
USER 10001:10001
