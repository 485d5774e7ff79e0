# The light install on a CPU: agent, server and the embedded policy; no torch.
#   docker build -t cairn . && docker run -p 8000:8000 -e CAIRN_SERVER_KEY=choose-one cairn
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY agent agent
COPY server server
COPY train train
RUN python -m venv /opt/cairn && /opt/cairn/bin/pip install --no-cache-dir .

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 cairn
COPY --from=build /opt/cairn /opt/cairn
ENV PATH=/opt/cairn/bin:$PATH OMP_NUM_THREADS=1 CAIRN_HOST=0.0.0.0
USER cairn
WORKDIR /home/cairn
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["cairn", "serve"]
