"""Measures `tbmq-migrate migrate` and `verify` beside the floor of its two servers, on the same rows, in the same minutes.

scripts/bench starts the servers and this program; benches/README.md explains the method. Each shape is written once, in one
loop, both as rows for PostgreSQL and as the Redis commands that a perfect copy would send. Then, round by round:

  floor    redis-cli --pipe feeds those commands to an empty Redis: SET … PXAT and ZADD a message, SET a session
  read     psql copies the rows out in binary form and throws them away
  migrate  the tool, from the same rows to an empty Redis, without a control schema of an earlier run
  verify   the tool, comparing at the full level what it has just copied: everything must be equal

A round counts only if Redis holds the right number of keys afterwards, and the right content in a sample of them.
"""

import argparse
import base64
import binascii
import dataclasses
import datetime
import json
import os
import platform
import random
import select
import signal
import statistics
import subprocess
import sys
import time
import urllib.parse

PACKET_IDS = 65_535
PAYLOAD_BYTES = 150
DEFAULT_TTL_MS = 604_800_000
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
HWM_POLL_SECONDS = 0.05  # VmHWM only grows, so the last look before the end is at most this old
STEP_TIMEOUT_SECONDS = 900  # one step of one round; the slowest shape needs a few dozen seconds


@dataclasses.dataclass(frozen=True)
class Load:
    """So many sessions with so many messages each."""

    name: str
    sessions: int
    messages_each: int

    @property
    def messages(self):
        return self.sessions * self.messages_each

    @property
    def keys(self):
        """Each message, and each session's set and last packet id."""
        return self.messages + 2 * self.sessions


SHAPES = {
    "400k": [Load("400k", 8_000, 50)],
    "giant": [Load("giant", 1, PACKET_IDS)],
    "million": [Load("million", 1_000_000, 1)],
    "scale": [Load("scale 100k", 2_000, 50), Load("scale 3m", 60_000, 50)],
}

TABLES = """
drop table if exists device_session_ctx, device_publish_msg;
create table device_session_ctx (client_id varchar(255) primary key, last_updated_time bigint not null,
    last_serial_number bigint, last_packet_id int);
create table device_publish_msg (client_id varchar(255) not null, serial_number bigint not null, topic varchar not null,
    time bigint not null, packet_id int, packet_type varchar(255), qos int not null, payload bytea not null,
    user_properties varchar, retain boolean, msg_expiry_interval int, payload_format_indicator int, content_type varchar(255),
    response_topic varchar(255), correlation_data bytea, primary key (client_id, serial_number));
create index device_publish_msg_packet_id on device_publish_msg (client_id, packet_id);
"""
# Vacuum sets the hint bits, so that the first reader does not pay for them.
AFTER_LOAD = "vacuum (freeze, analyze) device_session_ctx; vacuum (freeze, analyze) device_publish_msg; checkpoint"


class Failure(Exception):
    """The measurement cannot go on; the text says why."""


@dataclasses.dataclass
class Cost:
    """What one step took. CPU is the user and system time of a process with all its children."""

    wall_seconds: float
    client_cpu_seconds: float
    client_peak_bytes: int
    postgres_cpu_seconds: float
    redis_cpu_seconds: float


# --- The servers ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Servers:
    postgres_url: str
    postgres_pid: int
    pg_bin: str
    redis_urls: list
    redis_pids: list

    @classmethod
    def from_environment(cls):
        env = os.environ
        if "POSTGRES_PID" not in env:
            raise Failure("start this through scripts/bench")
        pids = [int(pid) for pid in env["REDIS_PIDS_LIST"].split()]
        return cls(env["DATABASE_URL"], int(env["POSTGRES_PID"]), env["PG_BIN"], env["REDIS_URL"].split(","), pids)

    def psql(self, *arguments):
        command = [f"{self.pg_bin}/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.postgres_url, *arguments]
        return captured(command)

    def redis(self, node, *arguments):
        return captured(["redis-cli", "-u", self.redis_urls[node], *arguments])

    def pipe_command(self, node):
        url = urllib.parse.urlsplit(self.redis_urls[node])
        return ["redis-cli", "-h", url.hostname, "-p", str(url.port), "--pipe"]

    def empty(self):
        for node in range(len(self.redis_urls)):
            self.redis(node, "flushall", "sync")
        self.psql("-c", "set client_min_messages = warning; drop schema if exists tbmq_migrate cascade")

    def keys(self):
        return sum(int(self.redis(node, "dbsize")) for node in range(len(self.redis_urls)))

    def node_of_slots(self):
        """The index of the node that serves each of the 16384 slots; all of them are node 0 without a cluster."""
        owners = [0] * 16_384
        if len(self.redis_urls) > 1:
            ports = [urllib.parse.urlsplit(url).port for url in self.redis_urls]
            for line in self.redis(0, "cluster", "nodes").splitlines():
                fields = line.split()
                node = ports.index(int(fields[1].split("@")[0].rsplit(":", 1)[1]))
                for slots in fields[8:]:
                    first, _, last = slots.partition("-")
                    for slot in range(int(first), int(last or first) + 1):
                        owners[slot] = node
        return owners

    def postgres_cpu(self):
        """Backends that have ended stand in the postmaster's own figures."""
        pids = [self.postgres_pid]
        with open(f"/proc/{self.postgres_pid}/task/{self.postgres_pid}/children", encoding="ascii") as children:
            pids += [int(pid) for pid in children.read().split()]
        return sum(cpu_seconds(pid) for pid in pids)

    def redis_cpu(self):
        return sum(cpu_seconds(pid) for pid in self.redis_pids)


def captured(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STEP_TIMEOUT_SECONDS)
    if done.returncode != 0:
        raise Failure(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def cpu_seconds(pid):
    """User and system time of a process and of its children that have been waited for; 0 if it has just ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / CLOCK_TICKS


# --- The data ---------------------------------------------------------------------------------------------------------


class Data:
    """One load as files: rows and contexts in COPY text form, and the Redis commands of each node."""

    def __init__(self, load, directory, owners):
        self.load = load
        self.rows = f"{directory}/rows.copy"
        self.contexts = f"{directory}/contexts.copy"
        self.commands = [f"{directory}/commands.{node}" for node in range(max(owners) + 1)]
        self.samples = []
        self._write(owners)

    def _write(self, owners):
        source = random.Random(self.load.name)
        payloads = [source.randbytes(PAYLOAD_BYTES) for _ in range(1_024)]
        payloads = [(payload.hex(), base64.b64encode(payload).decode()) for payload in payloads]
        written = int(time.time() * 1000) - 3_600_000
        sampled = {0, self.load.messages // 2, self.load.messages - 1}
        number = 0
        files = [open(path, "wb", buffering=1 << 20) for path in self.commands]
        with open(self.rows, "w", encoding="ascii") as rows, open(self.contexts, "w", encoding="ascii") as contexts:
            for session in range(self.load.sessions):
                client = f"device-{session:07d}"
                topic = f"site/{session % 97}/{client}/set"
                messages_key = f"{{{client}}}_messages"
                out = files[owners[binascii.crc_hqx(client.encode(), 0) % 16_384]]
                for serial in range(self.load.messages_each):
                    packet = serial % PACKET_IDS + 1
                    at = written + number % 3_600_000
                    in_hex, in_base64 = payloads[number % len(payloads)]
                    rows.write(f"{client}\t{serial}\t{topic}\t{at}\t{packet}\tPUBLISH\t1\t\\\\x{in_hex}" + "\t\\N\tf" + "\t\\N" * 5 + "\n")
                    member = f"{messages_key}_{packet}"
                    text = (
                        f'{{"clientId":"{client}","topicName":"{topic}","time":{at},"packetId":{packet},"packetType":"PUBLISH",'
                        f'"qos":1,"payload":"{in_base64}","retained":false}}'
                    )
                    out.write(resp("SET", member, text, "PXAT", str(at + DEFAULT_TTL_MS)) + resp("ZADD", messages_key, str(serial + 1), member))
                    if number in sampled:
                        self.samples.append((messages_key, member, serial + 1, at + DEFAULT_TTL_MS, json.loads(text)))
                    number += 1
                out.write(resp("SET", f"{{{client}}}_last_packet_id", str(packet)))
                contexts.write(f"{client}\t{at}\t{serial}\t{packet}\n")
        for file in files:
            file.close()

    def fill(self, servers):
        servers.psql("-c", f"set client_min_messages = warning; {TABLES}")
        servers.psql("-c", f"\\copy device_session_ctx from '{self.contexts}'")
        servers.psql("-c", f"\\copy device_publish_msg from '{self.rows}'")
        for statement in AFTER_LOAD.split(";"):
            servers.psql("-c", statement)

    def check(self, servers):
        """Redis must hold what was to be written: all keys by number, some by content."""
        found = servers.keys()
        if found != self.load.keys:
            raise Failure(f"{self.load.name}: {found} keys in Redis, expected {self.load.keys}")
        cluster = ["-c"] if len(servers.redis_urls) > 1 else []
        for messages_key, member, score, deadline, message in self.samples:
            text = servers.redis(0, *cluster, "get", member)
            state = (
                int(servers.redis(0, *cluster, "zscore", messages_key, member) or -1),
                int(servers.redis(0, *cluster, "pexpiretime", member)),
                json.loads(text) if text else None,
            )
            if state != (score, deadline, message):
                raise Failure(f"{self.load.name}: {member} is {state}, expected {(score, deadline, message)}")


def resp(*words):
    """One Redis command as it goes over the wire; the words are ASCII."""
    return (f"*{len(words)}\r\n" + "".join(f"${len(word)}\r\n{word}\r\n" for word in words)).encode("ascii")


# --- The steps --------------------------------------------------------------------------------------------------------


def floor(servers, data):
    return measured(servers, [(servers.pipe_command(node), path) for node, path in enumerate(data.commands)])


def read(servers, _data):
    command = [f"{servers.pg_bin}/psql", "-X", "-q", "-d", servers.postgres_url, "-c", "copy device_publish_msg to stdout (format binary)"]
    return measured(servers, [(command, os.devnull)])


def migrate(servers, options, data):
    return told(servers, options, data, "migrate", "messages_migrated")


def verify(servers, options, data):
    return told(servers, options, data, "verify", "messages_compared")


def told(servers, options, data, subcommand, figure):
    """One call of the tool, which must tell all messages in that figure of its report."""
    command = [options.tool, subcommand, "--json", "--message-limit", str(PACKET_IDS)]
    if options.jobs:
        command += ["--jobs", str(options.jobs)]
    report = f"{os.environ['WORK_DIR']}/report.json"
    cost = measured(servers, [(command, os.devnull)], report)
    with open(report, encoding="utf-8") as text:
        count = json.load(text)[figure]
    if count != data.load.messages:
        raise Failure(f"{data.load.name}: {subcommand} tells {count} messages, expected {data.load.messages}")
    return cost


def measured(servers, commands, output=os.devnull):
    """Runs the commands side by side, each with its file as input, and adds up what they cost."""
    postgres, redis = servers.postgres_cpu(), servers.redis_cpu()
    start = time.monotonic()
    errors = os.memfd_create("errors")
    running = []
    for command, path in commands:
        with open(path, "rb") as source, open(output, "wb") as sink:
            running.append(subprocess.Popen(command, stdin=source, stdout=sink, stderr=errors))
    try:
        waits = [wait_for(process, start + STEP_TIMEOUT_SECONDS) for process in running]
    except BaseException:
        for process in running:
            process.kill()
            process.wait()
        raise
    wall = time.monotonic() - start
    for process, (code, _, _) in zip(running, waits):
        if code != 0:
            raise Failure(f"{process.args[0]} ended with {code}: {os.pread(errors, 10_000, 0).decode(errors='replace').strip()}")
    os.close(errors)
    return Cost(
        wall, sum(cpu for _, cpu, _ in waits), max(peak for _, _, peak in waits), servers.postgres_cpu() - postgres, servers.redis_cpu() - redis
    )


def wait_for(process, end):
    """The exit code, CPU seconds and peak memory of a child. Its rusage knows a peak too, but inherits that of this program."""
    peak = 0
    handle = os.pidfd_open(process.pid)
    try:
        while not select.select([handle], [], [], HWM_POLL_SECONDS)[0]:
            peak = max(peak, peak_bytes(process.pid))
            if time.monotonic() > end:
                raise Failure(f"{process.args[0]} takes longer than {STEP_TIMEOUT_SECONDS} s")
    finally:
        os.close(handle)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, peak


def peak_bytes(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


# --- The run ----------------------------------------------------------------------------------------------------------


def run_load(servers, options, load, owners):
    note(f"{load.name}: writing {load.messages:,} messages in {load.sessions:,} sessions")
    data = Data(load, os.environ["WORK_DIR"], owners)
    data.fill(servers)
    steps = {"floor": lambda: floor(servers, data), "read": lambda: read(servers, data)}
    if not options.without_tool:
        steps["migrate"] = lambda: migrate(servers, options, data)
        steps["verify"] = lambda: verify(servers, options, data)
    costs = {name: [] for name in steps}
    for number in range(options.rounds):
        for name, step in steps.items():
            if name != "verify":  # it compares what the copy has left
                servers.empty()
            costs[name].append(step())
            if name != "read":
                data.check(servers)
        note(f"{load.name}: round {number + 1} of {options.rounds}: " + ", ".join(f"{n} {c[-1].wall_seconds:.2f} s" for n, c in costs.items()))
    servers.empty()
    for path in [data.rows, data.contexts, *data.commands]:
        os.remove(path)
    return data, costs


def table(data, costs):
    """The rows of the Markdown table: medians over the rounds, the spread of the wall time, and the rate beside the floor's."""
    median = {
        name: Cost(*(statistics.median(dataclasses.astuple(cost)[field] for cost in rounds) for field in range(5)))
        for name, rounds in costs.items()
    }
    load = data.load
    for name, cost in median.items():
        walls = [round.wall_seconds for round in costs[name]]
        ratio = f"{median['floor'].wall_seconds / cost.wall_seconds:.2f}"
        yield (
            f"| {load.name} | {name} | {cost.wall_seconds:.2f} ({min(walls):.2f}–{max(walls):.2f}) | {load.messages / cost.wall_seconds:,.0f} "
            f"| {ratio} | {cost.client_cpu_seconds:.2f} | {cost.postgres_cpu_seconds:.2f} | {cost.redis_cpu_seconds:.2f} "
            f"| {cost.client_peak_bytes / 2**20:.0f} |"
        )


def conditions(servers, options, load_before):
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        models = [line.partition(":")[2].strip() for line in cpuinfo if line.startswith("model name")]
    with open("/proc/meminfo", encoding="utf-8") as meminfo:
        memory_gib = int(meminfo.readline().split()[1]) / 2**20
    tool = "no tool" if options.without_tool else captured([options.tool, "--version"])
    redis = captured(["redis-server", "--version"]).split("v=")[1].split()[0]
    topology = f"cluster of {len(servers.redis_urls)}" if len(servers.redis_urls) > 1 else "standalone"
    return (
        f"{datetime.date.today()}; {os.cpu_count()} cores ({models[0] if models else platform.machine()}), {memory_gib:.0f} GiB; "
        f"PostgreSQL {servers.psql('-c', 'show server_version').split()[0]} (fsync off), Redis {redis} ({topology}), {tool}; "
        f"jobs {options.jobs or 'by default'}; medians of {options.rounds} rounds; load before the start {load_before:.2f}."
    )


def note(text):
    print(text, file=sys.stderr, flush=True)


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def options_from(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures a migration beside the floor of its servers and prints a Markdown table.",
        epilog="example: scripts/bench 400k giant --rounds 5 --jobs 4",
    )
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"what to measure: {', '.join(SHAPES)} (default: all)")
    parser.add_argument("--rounds", type=positive, default=3, help="rounds of each shape (default: 3)")
    parser.add_argument("--jobs", type=positive, help="handed to the tool (default: its own default)")
    parser.add_argument("--cluster", action="store_true", help="a Redis Cluster of three instead of one server")
    parser.add_argument("--without-tool", action="store_true", help="only what the servers can do")
    parser.add_argument("--tool", default=os.environ.get("CARGO_TARGET_DIR", "target") + "/release/tbmq-migrate", help="the program to measure")
    options = parser.parse_args(arguments)
    for shape in options.shapes:
        if shape not in SHAPES:
            parser.error(f"no such shape: {shape} (there are {', '.join(SHAPES)})")
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = options_from(sys.argv[1:])
    load_before = os.getloadavg()[0]
    servers = Servers.from_environment()
    owners = servers.node_of_slots()
    lines, flat = [], {}
    for shape in options.shapes or SHAPES:
        for load in SHAPES[shape]:
            data, costs = run_load(servers, options, load, owners)
            lines += table(data, costs)
            if shape == "scale":
                for name, rounds in costs.items():
                    micros = statistics.median(cost.wall_seconds for cost in rounds) / load.messages * 1e6
                    flat.setdefault(name, []).append(micros)
    print(f"\n{conditions(servers, options, load_before)}\n")
    print("| shape | step | wall s (range) | rows/s | rate / floor | client CPU s | PostgreSQL CPU s | Redis CPU s | client peak MiB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join(lines))
    for name, (small, large) in flat.items():
        print(f"\nCost a row, {name}: {small:.2f} µs of 100,000 rows, {large:.2f} µs of 3,000,000 ({large / small:.2f} times).")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"error: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
