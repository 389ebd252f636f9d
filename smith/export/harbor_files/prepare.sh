#!/bin/sh
# Make what a task starts from: the workspace as a repository of one commit, and beside it, out of the agent's reach, a
# store that holds the same commit, against which the submission is taken.
#
# prepare.sh TREE [WORKSPACE] [HOME]    TREE: git tree id that the workspace must have, to the bit
set -eu
tree=$1
workspace=${2:-/workspace}
home=${3:-/opt/smith}
here=$(cd "$(dirname "$0")" && pwd)
umask 022

# Links and submodules are no files that every tool copies unharmed, so they are made here.
tab=$(printf '\t')
grep -v '^#' "$here/entries" | while IFS="$tab" read -r kind target path; do
    case $kind in
    link) mkdir -p "$workspace/$(dirname "$path")" && ln -sfn "$target" "$workspace/$path" ;;
    module) mkdir -p "$workspace/$path" ;;
    esac
done

mkdir -p "$home/submission"
git init -q --bare "$home/base.git"
# Contents are taken as they are, whatever the source's own attributes say.
echo '* -text -ident -filter -working-tree-encoding' > "$home/base.git/info/attributes"
export GIT_DIR="$home/base.git" GIT_WORK_TREE="$workspace" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
cd "$workspace"
git add -A -f .
grep -v '^#' "$here/entries" | while IFS="$tab" read -r kind oid path; do
    if [ "$kind" = module ]; then git update-index --add --cacheinfo "160000,$oid,$path"; fi
done
made=$(git write-tree)
if [ "$made" != "$tree" ]; then
    echo "the source is not what the task was frozen from: tree $made and not $tree" >&2
    exit 1
fi
who='smith <smith@localhost> 0 +0000'
commit=$(printf 'tree %s\nauthor %s\ncommitter %s\n\nFrozen source %s\n' "$tree" "$who" "$who" "$tree" |
    git hash-object -w -t commit --stdin)
git update-ref HEAD "$commit"

cp -R "$home/base.git" "$workspace/.git"
GIT_DIR="$workspace/.git" git config core.bare false
chown -R agent: "$workspace"
