# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # Read and set by scripts/bundle.sh, which sources this.
# The bundle of the social application: CACHE/bundle/social/{lib/*.jar,runtime/bin/java}. Where there is a PostgreSQL, tare's own
# (scripts/postgres.sh) or the distribution's, the application is tried with it.

title="social application"
# The container's classes have listeners of java.beans, which is in java.desktop, and name types of java.instrument and
# java.security.jgss; databases need java.sql.
modules=java.base,java.desktop,java.instrument,java.logging,java.management,java.naming,java.security.jgss,java.sql,jdk.management
application_classes='tare/|org/|com/zaxxer/|com/ongres/|jakarta/'
trial_options=(-Xmx1536m -Xms1536m -Xss192k)

# refuse JAVA_OPTION...: without a database the application reports that, and ends with 1.
refuse() {
    local code=0
    "$work/tree/runtime/bin/java" "$@" -cp "$work/tree/lib/*" tare.social.Main --listen 127.0.0.1 --port 0 \
        --database 127.0.0.1:9/nothing --user tare --files 127.0.0.1:9 >"$work/printed" 2>&1 || code=$?
    cat "$work/printed"
    ((code == 1)) && grep --quiet 'cannot reach the database 127.0.0.1:9/nothing' "$work/printed"
}

# check PORT: whether every request there is answered as it should be.
check() {
    answers "$1" / '<h1>Upcoming events</h1>' &&
        answers "$1" '/tag?name=tag1' '<p id="hits">0</p>' &&
        answers "$1" '/event?id=1' ' 404 ' &&
        answers "$1" '/person/check?user=user1' $'\r\n\r\nfree' &&
        answers "$1" /static/site/00.js '<tare ' &&
        answers "$1" /image/person/1.jpg ' 502 ' &&
        answers "$1" /tare/stats '"store_errors":1,'
}

# launch PORT JAVA_OPTION...: how the application is started.
launch() {
    local port=$1
    shift
    command=("$work/tree/runtime/bin/java" "$@" -cp "$work/tree/lib/*" tare.social.Main --listen 127.0.0.1 --port "$port"
        --database "127.0.0.1:$database/postgres" --user tare --files 127.0.0.1:9)
}

# trial JAVA_OPTION...: runs it with the database, and asks it for pages, files and its state; without one it is started alone.
trial() {
    if [[ -n $postgres ]]; then
        serving check launch "$@"
    else
        refuse "$@"
    fi
}

# The programs of a PostgreSQL: prints nothing where there is none.
find_postgres() {
    local bin
    for bin in "$bundle"/postgresql-*/bin /usr/lib/postgresql/*/bin; do
        if [[ -x $bin/initdb && -x $bin/postgres && -x $bin/pg_ctl ]]; then
            printf '%s\n' "$bin"
            return
        fi
    done
}

# as_other COMMAND...: PostgreSQL does not run as root.
as_other() {
    if [[ $EUID -eq 0 ]]; then
        (cd / && setpriv --reuid=65534 --regid=65534 --clear-groups "$@")
    else
        "$@"
    fi
}

# Part of clear_up.
clear_up_more() {
    if [[ -n ${data:-} ]]; then
        as_other "$postgres/pg_ctl" -D "$data/cluster" -m immediate stop >/dev/null 2>&1 || true
        rm -rf "$data"
    fi
}

# Sets database to the port of a server with the application's tables, which ends with the script.
start_postgres() {
    data=$(mktemp -d)
    [[ $EUID -ne 0 ]] || chown 65534:65534 "$data"
    as_other "$postgres/initdb" -D "$data/cluster" -U tare -A trust -N --locale=C -E UTF8
    # A statement ends with a semicolon and an empty line: the tables are made before anybody can connect.
    {
        sed 's/;$/;\n/' workloads/social/agent/schema.sql
        printf "INSERT INTO id_gen VALUES ('person', 1);\n\n"
        sed 's/;$/;\n/' workloads/social/agent/indexes.sql
    } >"$work/tables.sql"
    as_other "$postgres/postgres" --single -j -D "$data/cluster" postgres <"$work/tables.sql"
    for _ in 1 2 3 4 5; do
        database=$((20000 + (RANDOM + $$) % 12000))
        # What holds the lock of this script must end with it.
        if as_other "$postgres/pg_ctl" -D "$data/cluster" -w -l "$data/cluster/log" \
            -o "-p $database -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off" start 9>&- </dev/null; then
            return
        fi
    done
    cat "$data/cluster/log"
    return 1
}

prepare() {
    or_show "run without a database" refuse
    postgres=$(find_postgres)
    if [[ -n $postgres ]]; then
        or_show "start PostgreSQL from $postgres" start_postgres
    else
        say "there is no PostgreSQL to try it with (scripts/postgres.sh builds one): some classes will not be in the archive, and it starts a little later"
    fi
}
