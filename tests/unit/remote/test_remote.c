/* A server as a live source: controls between rounds, requests that continue a text, and what is refused. The server
 * answers as a llama-server did, whose answers tests/servers/record.sh recorded. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/remote/remote.h"
#include "tests/rigs/test.h"

#define TOKENS 24

static struct policy_info policies[] = {{.name = POLICY_SERVER}, {.name = POLICY_BASELINE}};
static char url[64]; /* that of SPECSCOPE_SERVER, to record; else of the recorded server */
static pid_t server;

static int
start_server(void **state)
{
    (void)state;
    const char *given = getenv("SPECSCOPE_SERVER");
    if (given != NULL) {
        snprintf(url, sizeof url, "%s", given);
        return 0;
    }
    int out[2];
    char port[16] = "";
    if (pipe(out) != 0 || (server = fork()) < 0)
        return -1;
    if (server == 0) {
        dup2(out[1], STDOUT_FILENO);
        execlp("python3", "python3", "tests/servers/recorded.py", "replay", "tests/servers/llama_controls.jsonl", NULL);
        _exit(127);
    }
    close(out[1]);
    const ssize_t n = read(out[0], port, sizeof port - 1);
    close(out[0]);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", n > 0 ? atoi(port) : 0);
    return n > 0 ? 0 : -1;
}

static int
end_server(void **state)
{
    (void)state;
    if (server > 0) {
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }
    return 0;
}
FIXTURE(start_server, end_server);

struct rig {
    struct live *live;
    struct event_reader *reader;
    struct committed committed;
    token_t text[256];
    uint32_t n, rounds;
    char controls[1024]; /* "name=new " of each */
};

static struct remote_options
options(void)
{
    static const char prompt[] = "Three mice sat on a wall,";
    return (struct remote_options){.url = url,
                                   .policies = policies,
                                   .n_policies = 2,
                                   .policy = POLICY_SERVER,
                                   .prompt = prompt,
                                   .prompt_len = sizeof prompt - 1,
                                   .sampling = {.top_p = 1},
                                   .seed = 1,
                                   .tokens = TOKENS,
                                   .stay = true};
}

static void
take_events(struct rig *r)
{
    const struct event *e;
    enum token_source source;
    token_t token;
    while ((e = event_reader_next(r->reader)) != NULL) {
        if (committed_token(&r->committed, e, &token, &source) && r->n < 256)
            r->text[r->n++] = token;
        r->rounds += e->type == EVENT_ROUND;
        const size_t n = strlen(r->controls);
        if (e->type == EVENT_CONTROL)
            snprintf(r->controls + n, sizeof r->controls - n, "%s=%s ", control_event_name(&e->control),
                     e->control.new_text);
    }
}

static void
rest(struct rig *r)
{
    const uint64_t limit = clock_us() + 20000000;
    while (!r->live->ops->resting(r->live) && clock_us() < limit)
        usleep(1000);
    assert_true(r->live->ops->resting(r->live));
    take_events(r);
}

static void
begin(struct rig *r, const struct remote_options *o)
{
    struct err err;
    *r = (struct rig){0};
    assert_ok(remote_open(&r->live, o, &err), err);
    assert_non_null(r->reader = event_reader_open(r->live->ops->log(r->live)));
    assert_ok(r->live->ops->start(r->live, &err), err);
    rest(r);
}

static void
post(struct rig *r, struct control c)
{
    struct err err;
    assert_ok(r->live->ops->post(r->live, &c, &err), err);
}

static void
end(struct rig *r)
{
    event_reader_close(r->reader);
    live_close(r->live);
}

/* The text of a run without controls, of n tokens. */
static void
plain(struct rig *r, uint32_t n)
{
    struct remote_options o = options();
    o.tokens = n;
    begin(r, &o);
    end(r);
}

TEST(a_run_has_the_tokens_that_were_asked_for)
{
    struct rig r;
    plain(&r, TOKENS);
    assert_int_equal(r.n, TOKENS);
    assert_string_equal(r.controls, "run=start end=tokens ");
}

TEST(a_paused_run_takes_steps_of_rounds_and_has_the_same_text)
{
    struct rig r, whole;
    struct remote_options o = options();
    o.paused = true;
    begin(&r, &o);
    assert_int_equal(r.n, 1); /* the token of the prompt's forward pass */
    assert_false(r.live->ops->moving(r.live));
    post(&r, (struct control){.kind = CONTROL_STEP_ROUNDS, .n = 2});
    rest(&r);
    assert_int_equal(r.rounds, 2);
    assert_false(r.live->ops->moving(r.live));
    post(&r, (struct control){.kind = CONTROL_RESUME});
    rest(&r);
    assert_string_equal(r.controls, "run=start state=paused state=running state=paused state=running end=tokens ");
    end(&r);
    plain(&whole, TOKENS);
    assert_int_equal(r.n, TOKENS);
    assert_memory_equal(r.text, whole.text, TOKENS * sizeof *r.text);
}

TEST(an_ended_run_is_extended)
{
    struct rig r, whole;
    const struct remote_options o = options();
    begin(&r, &o);
    post(&r, (struct control){.kind = CONTROL_EXTEND, .n = 8});
    rest(&r);
    assert_string_equal(r.controls, "run=start end=tokens end=tokens ");
    end(&r);
    plain(&whole, TOKENS + 8);
    assert_int_equal(r.n, TOKENS + 8);
    assert_memory_equal(r.text, whole.text, r.n * sizeof *r.text);
}

TEST(a_breakpoint_pauses_after_its_round)
{
    struct rig r;
    struct remote_options o = options();
    o.paused = true;
    begin(&r, &o);
    post(&r, (struct control){.kind = CONTROL_BREAK, .n = 3});
    post(&r, (struct control){.kind = CONTROL_RESUME});
    rest(&r);
    assert_int_equal(r.rounds, 3);
    assert_contains(r.controls, "state=paused break=3 ");
    end(&r);
}

TEST(another_prompt_begins_a_run)
{
    struct rig r;
    const struct remote_options o = options();
    begin(&r, &o);
    post(&r, (struct control){.kind = CONTROL_PROMPT, .text = "A fox"});
    rest(&r);
    assert_string_equal(r.controls, "run=start end=tokens run=prompt prompt=A fox end=tokens ");
    assert_int_equal(r.n, 2 * TOKENS);
    end(&r);
}

TEST(a_changed_sampling_knob_is_recorded_and_requested)
{
    struct rig r;
    struct settings s;
    struct remote_options o = options();
    o.paused = true;
    begin(&r, &o);
    post(&r, (struct control){.kind = CONTROL_KNOB, .name = "temperature", .text = "0.7"});
    r.live->ops->requested(r.live, 0, &s);
    assert_near(s.sampling.temperature, 0.7, 1e-6);
    post(&r, (struct control){.kind = CONTROL_RESUME});
    rest(&r);
    assert_contains(r.controls, "temperature=0.7 state=running end=tokens ");
    end(&r);
}

TEST(notes_and_races_are_recorded)
{
    struct rig r;
    const struct remote_options o = options();
    begin(&r, &o);
    post(&r, (struct control){.kind = CONTROL_NOTE, .n = 12, .text = "odd"});
    post(&r, (struct control){.kind = CONTROL_RACE, .n = 1});
    rest(&r);
    assert_contains(r.controls, "end=tokens note=12 odd race=begins ");
    end(&r);
}

static void
refuses(struct rig *r, struct control c, const char *why)
{
    struct err err;
    assert_false(r->live->ops->post(r->live, &c, &err));
    assert_int_equal(err.kind, ERR_USAGE);
    assert_contains(err.text, why);
}

TEST(controls_that_a_server_cannot_carry_out_are_refused_with_a_reason)
{
    struct rig r;
    const struct remote_options o = options();
    begin(&r, &o);
    refuses(&r, (struct control){.kind = CONTROL_KNOB, .name = "k", .text = "4"}, "only at a start: --launch");
    refuses(&r, (struct control){.kind = CONTROL_POLICY, .text = "sd"}, "only at a start: --launch");
    refuses(&r, (struct control){.kind = CONTROL_PROBE, .text = "all"}, "sends whole rounds of its own setting");
    refuses(&r, (struct control){.kind = CONTROL_STEP_TOKEN}, "sends whole rounds of its own setting");
    refuses(&r, (struct control){.kind = CONTROL_KNOB, .name = "top_p", .text = "7"}, "top_p");
    refuses(&r, (struct control){.kind = CONTROL_EXTEND}, "a number above 0");
    end(&r);
}

TEST(a_note_before_the_end_is_recorded)
{
    struct rig r;
    const struct remote_options o = options();
    begin(&r, &o);
    post(&r, (struct control){.kind = CONTROL_NOTE, .n = 3, .text = "last"});
    post(&r, (struct control){.kind = CONTROL_QUIT});
    const uint64_t limit = clock_us() + 20000000;
    while (!event_log_finished(r.live->ops->log(r.live)) && clock_us() < limit)
        usleep(1000);
    take_events(&r);
    assert_contains(r.controls, "end=tokens note=3 last ");
    end(&r);
}

TEST(a_server_that_is_closed_while_it_generates_ends_at_once)
{
    struct rig r = {0};
    struct err err;
    struct remote_options o = options();
    o.tokens = 200;
    assert_ok(remote_open(&r.live, &o, &err), err);
    assert_ok(r.live->ops->start(r.live, &err), err);
    const uint64_t began = clock_us();
    live_close(r.live);
    assert_less(clock_us() - began, 5000000);
}

/* Counts the starts, and writes the setting of the last one. */
struct starts {
    int n;
    char flags[64];
};

static bool
write_flags(void *user, const struct settings *s, char *out, size_t n, struct err *err)
{
    struct starts *starts = user;
    (void)err;
    starts->n++;
    snprintf(starts->flags, sizeof starts->flags, "policy %u k %g", (unsigned)s->policy, s->value[s->policy][0]);
    snprintf(out, n, "--flags");
    return true;
}

TEST(a_changed_policy_or_knob_starts_the_server_again)
{
    struct rig r;
    struct starts starts = {0};
    struct policy_info drafting[] = {policies[1], {.name = "sd", .n_knobs = 1}};
    drafting[1].knobs[0] = (struct knob){.name = "k", .kind = KNOB_INTEGER, .min = 1, .max = 9, .step = 1, .def = 3};
    struct remote_options o = options();
    o.url = NULL;
    o.launch = (struct remote_launch){
        "python3 tests/servers/recorded.py replay tests/servers/llama_controls.jsonl {flags}", write_flags, &starts};
    o.policies = drafting;
    o.policy = POLICY_BASELINE;
    begin(&r, &o);
    assert_string_equal(starts.flags, "policy 0 k 0");
    post(&r, (struct control){.kind = CONTROL_POLICY, .text = "sd"});
    post(&r, (struct control){.kind = CONTROL_KNOB, .name = "k", .text = "5"});
    post(&r, (struct control){.kind = CONTROL_RESTART});
    rest(&r);
    assert_int_equal(starts.n, 2);
    assert_string_equal(starts.flags, "policy 1 k 5");
    assert_string_equal(r.controls, "run=start end=tokens policy=sd k=5 run=restart end=tokens ");
    post(&r, (struct control){.kind = CONTROL_RESTART});
    rest(&r);
    assert_int_equal(starts.n, 2); /* the same setting */
    assert_int_equal(r.n, 3 * TOKENS);
    end(&r);
}

/* The last test: it takes more recorded answers of /metrics than one. */
TEST(counters_are_appended_while_the_source_stays)
{
    struct rig r;
    struct remote_options o = options();
    const uint64_t limit = clock_us() + 20000000;
    o.counters = true;
    begin(&r, &o);
    while (strstr(r.controls, "server={") == NULL && clock_us() < limit) {
        usleep(1000);
        take_events(&r);
    }
    assert_contains(r.controls, "\"at\":[");
    assert_contains(r.controls, "\"drafts\":");
    assert_contains(r.controls, "end=tokens");
    end(&r);
}
