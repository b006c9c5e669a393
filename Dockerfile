# nearfar in a container. Not tried: this file has been built nowhere yet.
#
#   docker build -t nearfar .
#   docker run --rm -v "$PWD":/work -w /work nearfar advise --far cxl-asic -- PROGRAM
#
# Measuring in a container has the container's limits: no huge pages of its own, and only the CPUs
# and memory nodes that it was given.
FROM debian:bookworm AS build
RUN apt-get update && apt-get install -y git make
COPY . /nearfar
WORKDIR /nearfar
RUN make wheel

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /nearfar/dist /tmp/dist
RUN python3 -m venv /opt/nearfar && /opt/nearfar/bin/pip install /tmp/dist/nearfar-*.whl \
    && rm -r /tmp/dist
ENTRYPOINT ["/opt/nearfar/bin/nearfar"]
