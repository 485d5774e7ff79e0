#!/usr/bin/env bash
# From nothing to a served agent: two worlds, imitation, reinforcement learning, evaluation, export, one question.
# Cut for an hour of two CPU cores; train/recipes/tiny_sft.toml and tiny_rl.toml say what is learned, and docs/training.md why.
#
#   pip install 'cairn-search[train]'
#   bash train/tiny.sh                         # everything goes to runs/tiny
#   TINY_OUT=runs/other bash train/tiny.sh
#
# A stage that is done is skipped, and a training goes on from its last state: after a stop, call it again.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
OUT=${TINY_OUT:-runs/tiny}
RECIPES=${TINY_RECIPES:-$HERE/recipes}                # folder of tiny_sft.toml and tiny_rl.toml
DEV_QUESTIONS=${TINY_DEV_QUESTIONS:-300}              # they decide whether the policy before or after RL is kept
TEST_QUESTIONS=${TINY_TEST_QUESTIONS:-500}            # evaluated once, with what is kept
PROCESSES=${TINY_PROCESSES:-2}                        # that share a step of imitation; 1 on a GPU
CORES=$(getconf _NPROCESSORS_ONLN)
THREADS=${TINY_THREADS:-$((CORES < 4 ? CORES : 4))}
CAIRN=${CAIRN:-cairn}
EASIEST="noise=0 namesakes=0 paraphrase=0 exclusivity=1 staleness=0 contradiction=0 hops=2 unanswerable=0 well_known=0"

cairn() { $CAIRN "$@"; }

stage() {  # NAME COMMAND…: once, with the seconds that it took
  local name=$1 began=$SECONDS
  shift
  if [ -f "$OUT/seconds/$name" ]; then echo "$name: done before"; return; fi
  echo "$name …"
  "$@"
  echo $((SECONDS - began)) >"$OUT/seconds/$name"
}

# The lists: names that occur in no training world, always the same seed, kept with what is made.
world() {  # SPLIT QUESTIONS
  cairn world build --seed 1000 --split "$1" --size 600 --questions "$2" --out "$OUT/worlds/$1" \
    $(printf -- '--difficulty %s ' $EASIEST)
}

sft() {
  local resume=--resume
  if [ ! -f "$OUT/sft/state.pt" ]; then rm -rf "$OUT/sft" && resume=; fi
  cairn train sft --recipe "$RECIPES/tiny_sft.toml" --out "$OUT/sft" --processes "$PROCESSES" --threads "$THREADS" $resume
}

rl() {
  local resume=--resume
  if ! ls -d "$OUT"/rl/states/checkpoint-* >/dev/null 2>&1; then rm -rf "$OUT/rl" && resume=; fi
  cairn train rl --recipe "$RECIPES/tiny_rl.toml" --start "$OUT/sft/hub" --out "$OUT/rl" --threads "$THREADS" $resume
}

dev() {  # sft|rl: in int8, as it would be served
  cairn checkpoint export "$OUT/$1/hub" --out "$OUT/$1/ct2"
  cairn eval --model "$OUT/$1" --world "$OUT/worlds/dev" --json >"$OUT/dev_$1.json"
}

em() { awk -F'"em": ' '{ split($2, figure, /[,}]/); print figure[1]; exit }' "$1"; }  # the first one is of all questions

keep() {  # the better one by dev; the one before RL where both are as good
  local best=sft
  if awk "BEGIN { exit !($(em "$OUT/dev_rl.json") > $(em "$OUT/dev_sft.json")) }"; then best=rl; fi
  rm -rf "$OUT/hub" "$OUT/ct2"
  cp -r "$OUT/$best/hub" "$OUT/$best/ct2" "$OUT"
  echo $best >"$OUT/best"
}

test_once() {
  local best
  best=$(cat "$OUT/best")
  cairn eval --model "$OUT" --world "$OUT/worlds/test" --out "$OUT/test" --json >"$OUT/test.json"
  cairn checkpoint card "$OUT/$best" --recipe "$RECIPES/tiny_$best.toml" --out "$OUT" --result "test=$OUT/test.json"
}

ask() {
  local line
  line=$(sed -n '/"type":"chain2"/{p;q;}' "$OUT/worlds/test/questions.jsonl")
  cairn ask "$(sed 's/.*"question":"\([^"]*\)".*/\1/' <<<"$line")" --model "$OUT" --world "$OUT/worlds/test"
  echo "The answer is $(sed 's/.*"answers":\["\([^"]*\)".*/\1/' <<<"$line")."
}

report() {
  local name all=0
  echo "# From nothing to a served agent"
  echo
  echo "| stage | seconds |"
  echo "|---|---:|"
  for name in worlds sft rl dev_sft dev_rl keep test ask; do
    echo "| $name | $(cat "$OUT/seconds/$name") |"
    all=$((all + $(cat "$OUT/seconds/$name")))
  done
  echo "| all | $all |"
  echo
  echo "EM on dev: $(em "$OUT/dev_sft.json") before RL, $(em "$OUT/dev_rl.json") after it; kept: $(cat "$OUT/best")." \
    "On test, $TEST_QUESTIONS questions, evaluated once: $(em "$OUT/test.json"). Of a stage that was interrupted, the last run counts."
  echo
  echo "Serve it: \`cairn serve --model $OUT --world $OUT/worlds/test\`"
}

worlds() { world dev "$DEV_QUESTIONS" && world test "$TEST_QUESTIONS"; }

mkdir -p "$OUT/seconds"
stage worlds worlds
stage sft sft
stage rl rl
stage dev_sft dev sft
stage dev_rl dev rl
stage keep keep
stage test test_once
stage ask ask
report | tee "$OUT/report.md"
