#!/usr/bin/env bash
# deploy/image.sh NAME:TAG ARCHIVE [PROGRAM]: writes an image of OCI with the program alone, and no system, into an archive.
# It needs cargo, tar and sha256sum, and neither docker nor a registry. Without PROGRAM it builds one, with the features of
# SERAPHIM_FEATURES (default cloud,kubernetes,parquet). PROGRAM must be linked statically.
#
# `ctr images import`, `podman load --input` and `docker load --input` take the archive; `skopeo copy oci-archive:ARCHIVE
# docker://REGISTRY/NAME:TAG` puts it into a registry.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
name=$1 archive=$2 program=${3:-}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case $name in *:*) ;; *) echo "error: $name has no tag, as in seraphim:0.1.0" >&2; exit 2 ;; esac

case $(uname -m) in
  x86_64) architecture=amd64 target=x86_64-unknown-linux-gnu ;;
  aarch64) architecture=arm64 target=aarch64-unknown-linux-gnu ;;
  *) echo "error: images are made for x86_64 and aarch64, and this is $(uname -m)" >&2; exit 1 ;;
esac
if [ -z "$program" ]; then
  target_folder=${CARGO_TARGET_DIR:-$root/target}
  # The C library is linked in; a name of the target makes this hold for the program and not for what builds it.
  RUSTFLAGS='-C target-feature=+crt-static' cargo build --manifest-path "$root/Cargo.toml" --release --target "$target" \
    -p seraphim --no-default-features --features "${SERAPHIM_FEATURES:-cloud,kubernetes,parquet}"
  program=$target_folder/$target/release/seraphim
fi
if LC_ALL=C ldd "$program" 2>/dev/null | grep -q "=>"; then
  echo "error: $program needs libraries, which the image has not: build it with RUSTFLAGS='-C target-feature=+crt-static' and --target" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/tmp" "$work/root/etc/ssl/certs" "$work/image/blobs/sha256"
chmod 1777 "$work/root/tmp"
install -m 755 "$program" "$work/root/seraphim"
# Object stores are reached over TLS.
for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt; do
  [ ! -f "$file" ] || { install -m 644 "$file" "$work/root/etc/ssl/certs/ca-certificates.crt"; break; }
done
# The same files make the same image.
tar -C "$work/root" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf "$work/layer" .

# Puts a file among the blobs, and prints its digest.
blob() {
  local digest
  digest=$(sha256sum <"$1" | cut -d' ' -f1)
  cp "$1" "$work/image/blobs/sha256/$digest"
  echo "sha256:$digest"
}
# The description of a blob.
descriptor() { printf '"mediaType":"application/vnd.oci.image.%s","digest":"%s","size":%s' "$1" "$(blob "$2")" "$(stat -c %s "$2")"; }
cat >"$work/config" <<END
{"architecture":"$architecture","os":"linux","config":{"Entrypoint":["/seraphim"],"User":"65532:65532","Env":["SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"]},"rootfs":{"type":"layers","diff_ids":["$(blob "$work/layer")"]}}
END
cat >"$work/manifest" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{$(descriptor config.v1+json "$work/config")},"layers":[{$(descriptor layer.v1.tar "$work/layer")}]}
END
cat >"$work/image/index.json" <<END
{"schemaVersion":2,"manifests":[{$(descriptor manifest.v1+json "$work/manifest"),"platform":{"architecture":"$architecture","os":"linux"},"annotations":{"io.containerd.image.name":"$name","org.opencontainers.image.ref.name":"${name##*:}"}}]}
END
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"
tar -C "$work/image" -cf "$archive" .
echo "$archive: $name, $(($(stat -c %s "$archive") >> 20)) MiB"
