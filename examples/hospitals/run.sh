#!/usr/bin/env bash
# Four hospitals, three center nodes, a coordinator and its message server: nine processes on this machine, over TLS.
#
#     examples/hospitals/run.sh [FOLDER] [STUDY.toml ...]
#
# From nothing to finished studies. The data are the four hospitals of the UCI heart disease study, read from the folder
# that TACIT_DATA names, or downloaded and checked. Everything is made in FOLDER, and the processes end with the script.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$(mktemp -d)}
shift || true
studies=("$@")
if [ ${#studies[@]} -eq 0 ]; then studies=("$here"/../heart/study.toml); fi
for i in "${!studies[@]}"; do studies[i]=$(realpath "${studies[i]}"); done
tacit=${TACIT:-tacit}
hospitals=(cleveland hungarian switzerland va)
nodes=(node-a node-b node-c)
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

mkdir -p "$folder" && cd "$folder"
daemons=()
trap 'for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do kill "${daemons[i]}" 2>/dev/null || true; done; wait' EXIT

serve() { # serve NAME COMMAND...: a daemon, with its log in NAME.log
    local name=$1
    shift
    "$tacit" "$@" >"$name.log" 2>&1 &
    daemons+=($!)
}

serving() { # wait until each NAME's log says that it serves
    for name in "$@"; do
        for _ in $(seq 600); do
            grep -q '"serving"' "$name.log" 2>/dev/null && continue 2
            sleep 0.1
        done
        echo "run.sh: $name does not serve; see $folder/$name.log" >&2
        exit 1
    done
}

all() { # all COMMAND: run it for each line of standard input, at once; fail if one fails
    local jobs=()
    while read -r name; do
        "$1" "$name" </dev/null &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job"; done
}

# 1. The coordinator: authority, keys, server.
"$tacit" data get heart_disease --out data >/dev/null &
getting=$!
"$tacit" coordinator init --port "${PORT:-24222}" >/dev/null
serve coordinator coordinator serve
serving coordinator

# 2. Three authorities run a center node each.
join_center() { "$tacit" center init --invite "$1.invite" --folder "$1" >"$1.init" 2>&1; }
"$tacit" coordinator invite "${nodes[@]}" --center >/dev/null
printf '%s\n' "${nodes[@]}" | all join_center
for node in "${nodes[@]}"; do serve "$node" center serve --folder "$node"; done

# 3. Four hospitals join with their own keys, and read what they are asked.
join_party() {
    "$tacit" party init --invite "$1.invite" --data "data/$1.csv" --folder "$1" >"$1.init" 2>&1
    sed -i 's/^not_private = \[\]/not_private = ["privlogit", "secure-newton"]/' "$1/party.toml"
    "$tacit" party opt-in "${studies[@]}" --folder "$1"
}
wait "$getting"
"$tacit" coordinator invite "${hospitals[@]}" >/dev/null
printf '%s\n' "${hospitals[@]}" | all join_party
for hospital in "${hospitals[@]}"; do serve "$hospital" party serve --folder "$hospital"; done
serving "${nodes[@]}" "${hospitals[@]}"

# 4. The studies.
for study in "${studies[@]}"; do
    "$tacit" run "$study" --out "results-$(basename "$(dirname "$study")")-$(basename "$study" .toml)"
done
echo "results are in $folder"
