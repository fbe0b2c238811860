#!/usr/bin/env bash
# Four hospitals, three center nodes, a coordinator and its message server: nine processes on this machine, over TLS.
#
#     examples/hospitals/run.sh [FOLDER]
#
# From nothing to two finished studies of the same question: PrivLogit (exact; the center computes on shares) and
# PrivateNewton (differentially private). Then the same in one process, to compare. The data are the four hospitals of
# the UCI heart disease study, read from the folder that TACIT_DATA names, or downloaded and checked. Everything is made
# in FOLDER, and the processes end with the script.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$(mktemp -d)}
environment=$here/../../.venv/bin # where `make` puts it; an activated environment comes first
tacit=${TACIT:-$(command -v tacit || echo "$environment/tacit")}
python=${PYTHON:-$(dirname "$tacit")/python}
if [ ! -x "$tacit" ]; then
    echo "run.sh: there is no tacit here; say \`make demo\` once, or activate the environment that has it" >&2
    exit 1
fi
hospitals=(cleveland hungarian switzerland va)
nodes=(node-a node-b node-c)
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
SECONDS=0

mkdir -p "$folder" && cd "$folder"
daemons=()
trap 'for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do kill "${daemons[i]}" 2>/dev/null || true; done; wait' EXIT

say() { echo "[$SECONDS s] $*"; }

serve() { # serve NAME COMMAND...: a daemon, with its log in NAME.log
    local name=$1
    shift
    "$tacit" "$@" >"$name.log" 2>&1 &
    daemons+=($!)
}

has() { # has WORD FILE...: wait until each file has the word
    local word=$1
    shift
    for file in "$@"; do
        for _ in $(seq 3000); do
            grep -q "$word" "$file" 2>/dev/null && continue 2
            sleep 0.1
        done
        echo "run.sh: no $word in $folder/$file after 300 s" >&2
        exit 1
    done
}

each() { # each COMMAND NAME...: run it for each name, at once; fail if one fails
    local command=$1 jobs=() job
    shift
    for name in "$@"; do
        "$command" "$name" &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do wait "$job"; done
}

# 1. The coordinator: authority, keys, server.
"$tacit" data get heart_disease --out data >/dev/null &
getting=$!
"$tacit" coordinator init --port "${PORT:-24222}" >>setup.log 2>&1
serve coordinator coordinator serve
has '"serving"' coordinator.log
say "the message server is up"

# 2. Three authorities run a center node each.
join_center() { "$tacit" center init --invite "$1.invite" --folder "$1" >"$1.init" 2>&1; }
"$tacit" coordinator invite "${nodes[@]}" --center >>setup.log 2>&1
each join_center "${nodes[@]}"
for node in "${nodes[@]}"; do serve "$node" center serve --folder "$node"; done # which asks before it believes a party
say "three center nodes have joined"

# 3. Four hospitals join with keys of their own. Each allows PrivLogit, which no epsilon bounds, by name.
join_party() {
    "$tacit" party init --invite "$1.invite" --data "data/$1.csv" --folder "$1" >"$1.init" 2>&1
    sed -i 's/^not_private = \[\]/not_private = ["privlogit"]/' "$1/party.toml"
}
wait "$getting"
"$tacit" coordinator invite "${hospitals[@]}" >>setup.log 2>&1
each join_party "${hospitals[@]}"
for hospital in "${hospitals[@]}"; do serve "$hospital" party serve --folder "$hospital"; done
has '"serving"' "${nodes[@]/%/.log}" "${hospitals[@]/%/.log}"
for name in "${hospitals[@]}"; do has "\"$name\"" "${hospitals[@]/%//members.json}" "${nodes[@]/%//members.json}"; done
say "four hospitals have joined and are told of each other"

# 4. Each calls the others and the nodes by telephone and reads out its own fingerprint. They compare and accept.
told() { echo "$1=$(sed -n "s/^party  *$1  *//p" "$1.init")"; }
accept() { # accept NAME: NAME accepts the hospitals, but not itself
    local role=party hospital marks=()
    [[ $1 == node-* ]] && role=center
    for hospital in "${hospitals[@]}"; do [ "$hospital" = "$1" ] || marks+=("$(told "$hospital")"); done
    "$tacit" "$role" accept "${marks[@]}" --folder "$1" >"$1.accepted"
}
each accept "${hospitals[@]}" "${nodes[@]}"
say "all have compared fingerprints and accepted each other"

# 5. They read what they are asked and opt in: to the study with the digest that they read, with those whom they accepted.
study() { # study METHOD PRIVACY: the heart study with another method
    sed -e "s/^name = \"heart\"/name = \"heart-$1\"/" -e "s/^name = \"private-newton\"/name = \"$1\"/" \
        ${2:+-e '/^\[privacy\]/,/^$/d'} "$here/../heart/study.toml" >"$1.toml"
}
study privlogit none
study private-newton
opt_in() {
    local study digests=()
    for study in privlogit private-newton; do
        "$tacit" party show "$study.toml" --folder "$1" >"$1-$study.read"
        digests+=(--digest "$(sed -n 's/^ *Digest *//p' "$1-$study.read")")
    done
    "$tacit" party opt-in privlogit.toml private-newton.toml "${digests[@]}" --folder "$1" >"$1.consent"
}
each opt_in "${hospitals[@]}"
say "all have opted in"

# 6. The studies.
for method in privlogit private-newton; do
    "$tacit" run "$method.toml" --out "results-$method" >/dev/null 2>"results-$method.log"
    say "$method is finished: $folder/results-$method/report.html"
done

# 7. The same in one process.
"$python" "$here/compare.py" .
say "done"
