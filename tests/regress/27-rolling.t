"""Rolling failures: three targets fail in every order at turns 3, 5 and 8 of
10, and the first one returns at 9.  Every payload that any of them is sent has
all turns before it, whoever answered them, in order, once; also where a session
stays with the target that answered, until that fails too."""
import itertools
import os
import sys

sys.path.insert(0, os.path.join(os.environ["HF_SRCDIR"], "tests", "harness"))
import client
import provider
import tap
from daemon import Config, Daemon, shared

A = provider.Provider("openai")
B = provider.Provider("anthropic")
C = provider.Provider("openai")
D = provider.Provider("openai")
ALL = {"a": A, "b": B, "c": C, "d": D}
FAILING = {"refused": lambda p: p.down(),
           "503": lambda p: p.behave(provider.status(503)),
           "cut": lambda p: p.behave(provider.cut("x", 0, "drop"))}


def make():
    conf = Config(workers=2)
    for n, p in ALL.items():
        conf.provider(n, p)
    # The fourth is there so that somebody answers when three are gone.
    for rule in ("turn", "session"):
        conf.route(rule, ["a/m", "b/m", "c/m", "d/m"], failback=rule)
    return Daemon(conf).start()


get_daemon = shared(make)


def answers_by(name):
    """Its own words, so that who said what can be seen in a history."""
    return provider.reply_to(lambda rq: "%s heard: %s" % (name, rq.last_user()))


def expected(rule, home, dead):
    """Who answers, if 'home' answered last."""
    if rule == "session" and home is not None and home not in dead:
        return home
    return [n for n in ALL if n not in dead][0]


def play(t, rule, order, how, stream):
    d = get_daemon()
    for n, p in ALL.items():
        p.up()
        p.behave(answers_by(n))
        p.take()
    session = "rolling-%s-%s-%s-%s" % (rule, "".join(order), how, stream)
    dead, said, home = set(), [], None
    for turn in range(1, 11):
        where = "%s, turn %d" % (session, turn)
        for when, n in zip((3, 5, 8), order):
            if turn == when:
                FAILING[how](ALL[n])
                dead.add(n)
        if turn == 9:
            A.up()
            A.behave(answers_by("a"))
            dead.discard("a")
        if turn == 10 and rule == "session" and home != "a":
            FAILING[how](ALL[home])	# back to who returned
            dead.add(home)
        for p in ALL.values():
            p.take()
        text = "this is turn %d" % turn
        r = client.chat(d, text, model=rule, session=session, stream=stream)
        home = expected(rule, home, dead)
        t.eq((r.status, r.text), (200, "%s heard: %s" % (home, text)), where)
        said.append(("user", text))
        for n, p in ALL.items():
            for rq in p.requests:
                got = [(m["role"], m["content"] if isinstance(
                    m["content"], str) else m["content"][0]["text"])
                    for m in rq.messages]
                t.eq(got, said, "%s: what %s was told" % (where, n))
        said.append(("assistant", r.text))
    t.eq(home, "a", session + ": who returned answers again")
    t.eq([x["state"] for x in d.session(session)["turns"]],
         ["complete"] * 10, session)


@tap.case("three targets fail in every order, the first returns", deadline=120)
def rolling(t):
    for order in itertools.permutations("abc"):
        for how in FAILING:
            for stream in (False, True):
                play(t, "turn", order, how, stream)
            play(t, "session", order, how, stream=how != "503")
    for p in ALL.values():
        t.eq(p.violations, [], "violations")


tap.main()
