# Builds the file system of the sandbox and starts the interpreter in it. Runs as the first process of new user, mount,
# process, network, IPC and host name namespaces.
# Arguments: where to build it, megabytes for /tmp, the interpreter, its program, then the folders it needs.
set -eu
root=$1 megabytes=$2 python=$3 program=$4
shift 4
mount -t tmpfs -o size=1m,mode=755,nosuid,nodev sandbox "$root"
for folder in "$@"; do
    if [ -L "$folder" ]; then
        mkdir -p "$root$(dirname "$folder")"
        ln -s "$(readlink "$folder")" "$root$folder"
    else
        mkdir -p "$root$folder"
        mount --bind "$folder" "$root$folder"
        mount -o remount,bind,ro,nosuid,nodev "$root$folder"
    fi
done
mkdir -p "$root/tmp" "$root/dev" "$root/proc" "$root/.old"
mount -t tmpfs -o "size=${megabytes}m,mode=777,nosuid,nodev,noexec" files "$root/tmp"
for device in null zero urandom; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
# The mount programs read the table of mounts there; the program that is run does not see it.
mount --rbind /proc "$root/proc"
cd "$root"
pivot_root . .old
umount -l /.old
mount -o remount,ro,nosuid,nodev /
umount -l /proc
cd /tmp
exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$python" -s -B -c "$program"
