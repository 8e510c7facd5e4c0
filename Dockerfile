# The command line alone: docker build -t latchkey . && docker run --rm -e LATCHKEY_REDIS latchkey ls
FROM golang:1.26 AS build
WORKDIR /latchkey
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /bin/latchkey ./cmd/latchkey

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /bin/latchkey /bin/latchkey
USER 65534:65534
ENTRYPOINT ["/bin/latchkey"]
