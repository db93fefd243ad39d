# syntax=docker/dockerfile:1

FROM rust:1.95-slim-bookworm AS build
# The C compiler builds SQLite and the TLS library; cmake is used by the latter on some platforms.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential cmake \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist --package volcanic-telegram \
    && install -D target/dist/volcanic-telegram /out/volcanic-telegram

FROM debian:bookworm-slim
# tzdata: time zones by name. bash, curl and git: what the assistant's shell is mostly asked for.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bash ca-certificates curl git tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 volcanic \
    && useradd --uid 10001 --gid volcanic --home-dir /data --no-create-home --shell /usr/sbin/nologin volcanic \
    && install --directory --owner=volcanic --group=volcanic --mode=0700 /data
COPY --from=build /out/volcanic-telegram /usr/local/bin/volcanic-telegram
# The listener is off unless A2A_ENABLED is true; inside a container it has to listen on every address to be reached.
ENV VOLCANIC_HOME=/data \
    A2A__Listen=0.0.0.0:8080
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/volcanic-telegram"]
