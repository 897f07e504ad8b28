# shellcheck shell=bash disable=SC2154
# Roots of other releases of Debian, for the scripts beside this file, tests/package/debian and
# cmake/release/run, which source it. Root is needed: a root is made by debootstrap and entered by chroot, in
# namespaces of its own for mounts and processes.
#
# They set `source` (the repository), `folder` (where the roots are kept) and `clone` (its path in a root).

say() { echo "${said_by:-systems}: $*" >&2; }

# The mirror that this system's apt uses.
# shellcheck disable=SC2016
mirror() { apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' 'Created-By: Packages' | head -1; }

make_root() {
  local suite=$1 root=$folder/$1
  [ ! -e "$root/.complete" ] || return 0
  say "making a root of $suite"
  rm -rf "$root"
  # A path with a space is more than debootstrap can take.
  local made=/var/tmp/httpretry-$suite-$$
  debootstrap --variant=minbase "$suite" "$made" "$(mirror)" >"$folder/$suite-debootstrap.log" 2>&1 || {
    tail -5 "$folder/$suite-debootstrap.log" >&2
    rm -rf "$made"
    return 1
  }
  # A mirror may be a snapshot of some weeks ago.
  echo 'Acquire::Check-Valid-Until "false";' >"$made/etc/apt/apt.conf.d/90snapshot"
  # A root that lost files when the power failed is made again.
  echo force-unsafe-io >"$made/etc/dpkg/dpkg.cfg.d/unsafe-io"
  mv "$made" "$root" && touch "$root/.complete"
}

# copy_root SUITE NAME: a copy of the bare root of SUITE, unless there is one.
copy_root() {
  local root=$folder/$2
  [ ! -e "$root/.complete" ] || return 0
  rm -rf "$root" "$root.part"
  cp -a "$folder/$1" "$root.part" && mv "$root.part" "$root"
}

# inside ROOT COMMAND...: runs it in the clone there.
inside() {
  local root=$1
  shift
  # The mounts and whatever the command leaves running end with the namespaces.
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -c '
    root=$1 clone=$2
    shift 2
    mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" || exit 1
    cp -L /etc/resolv.conf "$root/etc/resolv.conf"
    exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
      bash -c "cd \"\$0\" && exec \"\$@\"" "$clone" "$@"' bash "$root" "$clone" "$@"
}

# end_root ROOT: ends what still runs there after an interruption, because a signal ends only the script.
end_root() {
  local process
  while IFS=/ read -r _ _ process _; do
    kill -KILL "$process" 2>/dev/null || true
  done < <(find /proc -maxdepth 2 -path '/proc/[0-9]*/root' -lname "$1" 2>/dev/null)
}

# fresh_clone SUITE: a clone of HEAD, in place of the one before.
fresh_clone() {
  rm -rf "${folder:?}/$1${clone%/*}"
  git clone -q --no-hardlinks "$source" "$folder/$1$clone"
}
