/* Requests to a server that plays parts (tests/servers/hostile.py): what is refused, what has bounds, and that a key
 * appears nowhere. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/remote/http.h"
#include "tests/rigs/hostile_server.h"
#include "tests/rigs/test.h"

#define KEY "sk-secret-of-the-test"

static struct launch *server; /* NULL: there is no python3 */

static int
begin(void **state)
{
    (void)state;
    struct err err = {0};
    if (system("command -v python3 >/dev/null") == 0 &&
        !launch_open(&server, "exec python3 tests/servers/hostile.py", 60, NULL, &err))
        fail_msg("%s", err.text);
    return 0;
}

static int
end(void **state)
{
    (void)state;
    launch_close(server);
    return 0;
}

FIXTURE(begin, end);

static struct http *
part(const char *name, struct http_options o)
{
    if (server == NULL)
        skip();
    return hostile_part(server, name, o);
}

struct stream {
    int events, most; /* most 0: no limit */
    atomic_bool *cancel;
    struct err err;
    bool ok;
};

static bool
on_event(void *user, const char *data, size_t n)
{
    struct stream *s = user;
    assert_int_equal(strlen(data), n);
    assert_null(strstr(data, KEY));
    if (s->cancel != NULL)
        atomic_store(s->cancel, true);
    return ++s->events != s->most;
}

static struct stream
stream(const char *name, int most, struct http_options o)
{
    struct stream s = {.most = most};
    struct http *h = part(name, o);
    s.ok = http_stream(h, "/completion", "{}", on_event, &s, &s.err);
    http_close(h);
    return s;
}

/* The stream fails for this reason, in one printable line without the key, after this number of events. */
static void
fails(const char *name, int events, const char *why)
{
    const struct stream s = stream(name, 0, (struct http_options){.key = KEY, .stall_s = 0.5});
    assert_false(s.ok);
    assert_int_equal(s.err.kind, ERR_WORK);
    assert_contains(s.err.text, why);
    assert_lacks(s.err.text, KEY);
    for (const char *c = s.err.text; *c != '\0'; c++)
        assert_in_range((unsigned char)*c, ' ', 0xff);
    assert_int_equal(s.events, events);
}

/* Gets a path of the server itself. */
static char *
get(const char *path, struct http_options o)
{
    struct http *h = part("", o);
    int status;
    size_t n;
    char *answer;
    struct err err = {0};
    assert_ok(http_call(h, path, NULL, 20, &status, &answer, &n, &err), err);
    assert_int_equal(status, 200);
    assert_int_equal(strlen(answer), n);
    http_close(h);
    return answer;
}

/* ---- addresses and keys ---- */

static void
refuses(const char *url, const char *key)
{
    struct http *h;
    struct err err = {0};
    assert_false(http_open(&h, &(struct http_options){.url = url, .key = key}, &err));
    assert_null(h);
    assert_int_equal(err.kind, ERR_USAGE);
    assert_lacks(err.text, "secret");
}

TEST(addresses_that_are_not_http_are_refused)
{
    static const char *const wrong[] = {"",         "127.0.0.1:80",  "file:///etc/passwd", "ftp://host/",
                                        "httpx://", "gopher://host", "http:/host",         " http://host"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuses(wrong[i], NULL);
}

TEST(addresses_with_a_password_are_refused_without_showing_it)
{
    refuses("http://user:secret@host/", NULL);
    refuses("https://secret@host", NULL);
    refuses("http://host/a@secret", NULL);
}

TEST(addresses_with_wrong_characters_are_refused)
{
    static const char *const wrong[] = {"http://a b",  "http://a\nb", "http://a\033b",   "http://a\\b",
                                        "http://h?x=", "http://h#x",  "http://\303\274", "http://a\177"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuses(wrong[i], NULL);
}

TEST(addresses_without_a_host_or_of_any_length_are_refused)
{
    char text[4000] = "http://";
    refuses("http://", NULL);
    refuses("http:///path", NULL);
    refuses("https://:80", NULL);
    memset(text + 7, 'a', sizeof text - 8);
    refuses(text, NULL);
}

TEST(keys_that_would_begin_another_header_are_refused)
{
    refuses("http://127.0.0.1", "");
    refuses("http://127.0.0.1", "secret\r\nX-Other: 1");
    refuses("http://127.0.0.1", "secret key");
    refuses("http://127.0.0.1", "secret\303\274");
}

TEST(a_server_that_does_not_run_is_an_error_with_its_address)
{
    struct http *h;
    struct err err = {0};
    int status;
    size_t n;
    char *answer;
    assert_ok(http_open(&h, &(struct http_options){.url = "http://127.0.0.1:1/"}, &err), err);
    assert_false(http_call(h, "/health", NULL, 20, &status, &answer, &n, &err));
    assert_contains(err.text, "http://127.0.0.1:1/health");
    assert_null(answer);
    http_close(h);
}

/* ---- answers ---- */

TEST(a_connection_carries_several_requests)
{
    struct http *h = part("honest", (struct http_options){.key = NULL});
    struct stream s = {.most = 0};
    int status;
    size_t n;
    char *answer;
    struct err err = {0};
    for (int i = 0; i < 3; i++) {
        assert_ok(http_stream(h, "/completion", "{}", on_event, &s, &err), err);
        assert_ok(http_call(h, "/props", NULL, 20, &status, &answer, &n, &err), err);
        assert_int_equal(status, 200);
        assert_contains(answer, "hostile.gguf");
        free(answer);
    }
    assert_int_equal(s.events, 3 * 5);
    http_close(h);
}

TEST(an_address_may_end_as_those_of_other_clients)
{
    static const char *const ends[] = {"honest/", "honest//", "honest/v1", "honest/v1/"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct http *h = part(ends[i], (struct http_options){.key = NULL});
        struct err err = {0};
        int status;
        size_t n;
        char *answer;
        assert_ok(http_call(h, "/props", NULL, 20, &status, &answer, &n, &err), err);
        assert_int_equal(status, 200);
        free(answer);
        http_close(h);
    }
}

TEST(a_host_keeps_its_name)
{
    struct http *h;
    struct err err = {0};
    assert_ok(http_open(&h, &(struct http_options){.url = "http://v1"}, &err), err);
    http_refused(h, "/props", 500, "", 0, &err);
    assert_contains(err.text, "http://v1/props");
    http_close(h);
}

TEST(an_error_of_a_server_is_an_answer)
{
    struct http *h = part("honest", (struct http_options){.key = NULL});
    struct err err = {0};
    int status;
    size_t n;
    char *answer;
    assert_ok(http_call(h, "/nothing", NULL, 20, &status, &answer, &n, &err), err);
    assert_int_equal(status, 404);
    assert_false(http_refused(h, "/nothing", status, answer, n, &err));
    assert_contains(err.text, "/honest/nothing failed: status 404: File Not Found");
    free(answer);
    http_close(h);
}

TEST(a_key_is_sent_and_masked_where_the_server_repeats_it)
{
    char *answer = get("/key", (struct http_options){.key = KEY});
    assert_contains(answer, "Bearer *********************\"");
    free(answer);
    answer = get("/key", (struct http_options){.key = "short"});
    assert_contains(answer, "Bearer short");
    free(answer);
    answer = get("/key", (struct http_options){.key = NULL});
    assert_contains(answer, "none");
    free(answer);
}

TEST(a_password_file_is_not_read)
{
    char folder[] = "/tmp/specscope-netrc-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/.netrc", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("machine 127.0.0.1 login me password secret\n", f);
    fclose(f);
    setenv("HOME", folder, 1);
    char *answer = get("/key", (struct http_options){.key = NULL});
    assert_contains(answer, "none");
    free(answer);
    unlink(path);
    rmdir(folder);
}

TEST(a_proxy_of_the_environment_is_not_used)
{
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    free(get("/health", (struct http_options){.key = NULL}));
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
}

TEST(no_redirect_is_followed)
{
    fails("redirect", 0, "it redirects to http://localhost:");
    char *answer = get("/seen", (struct http_options){.key = NULL});
    assert_string_equal(answer, "[]"); /* no request, and no key */
    free(answer);
}

TEST(a_certificate_that_nobody_signed_is_refused)
{
    struct http *h;
    struct err err = {0};
    int status;
    size_t n;
    char *answer, pem[] = "/tmp/specscope-tls-XXXXXX", command[400], url[60];
    if (server == NULL || system("command -v openssl >/dev/null") != 0)
        skip();
    close(mkstemp(pem));
    snprintf(
        command, sizeof command,
        "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -days 1 "
        "-keyout %s.key -out %s.crt 2>/dev/null && cat %s.key %s.crt >%s && rm %s.key %s.crt",
        pem, pem, pem, pem, pem, pem, pem);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "exec python3 tests/servers/hostile.py --tls %s", pem);
    FILE *of = popen(command, "r");
    unsigned port = 0;
    int pid = 0;
    assert_non_null(of);
    assert_int_equal(fscanf(of, "%u %d", &port, &pid), 2);
    snprintf(url, sizeof url, "https://127.0.0.1:%u", port);
    assert_ok(http_open(&h, &(struct http_options){.url = url, .key = KEY}, &err), err);
    assert_false(http_call(h, "/health", NULL, 20, &status, &answer, &n, &err));
    assert_contains(err.text, "certificate");
    http_close(h);
    kill(pid, SIGTERM);
    pclose(of);
    unlink(pem);
}

/* ---- bounds ---- */

TEST(an_answer_without_an_end_is_refused)
{
    struct http *h = part("endless-answer", (struct http_options){.key = NULL});
    struct err err = {0};
    int status;
    size_t n;
    char *answer;
    assert_false(http_call(h, "/call", NULL, 60, &status, &answer, &n, &err));
    assert_contains(err.text, "its answer is longer than 64 MB");
    assert_null(answer);
    http_close(h);
}

TEST(a_request_has_a_limit_of_time)
{
    struct http *h = part("silent", (struct http_options){.key = NULL});
    struct err err = {0};
    int status;
    size_t n;
    char *answer;
    assert_false(http_call(h, "/call", NULL, 0.3, &status, &answer, &n, &err));
    assert_contains(err.text, "its answer takes too long");
    http_close(h);
}

TEST(a_header_without_an_end_is_refused)
{
    fails("endless-header", 0, "header");
}

TEST(bytes_that_are_not_http_are_refused)
{
    fails("garbage", 0, "no answer from");
}

TEST(a_line_of_a_gigabyte_is_refused)
{
    fails("endless-line", 2, "it sends more than 4 MB without an event");
}

TEST(comments_without_an_end_are_refused)
{
    fails("endless-comment", 2, "it sends more than 4 MB without an event");
}

TEST(comments_do_not_hide_a_stalled_stream)
{
    fails("slow-comment", 2, "it sends nothing any more");
}

TEST(stalled_streams_end)
{
    fails("stalled", 2, "it sends nothing any more");
    fails("silent", 0, "it sends nothing any more");
}

TEST(a_cut_stream_is_noticed)
{
    fails("cut", 2, "no answer from");
}

TEST(a_stream_of_another_type_is_refused)
{
    fails("wrong-type", 0, "its answer is no stream of events");
}

TEST(errors_of_streams_show_the_message_of_the_server)
{
    fails("unauthorized", 0,
          "status 401: wrong key: Bearer ********************* \\x1b[31mred\\x0a2; give the server's key");
    fails("escaped-key", 0, "status 403: wrong key: *********************; give");
    fails("html", 0, "status 500");
    fails("nothing", 0, "status 404: there is no such part");
}

/* ---- ends ---- */

TEST(the_caller_ends_a_stream)
{
    const struct stream s = stream("endless", 1000, (struct http_options){.key = NULL});
    assert_ok(s.ok, s.err);
    assert_int_equal(s.events, 1000);
}

static void *
set_soon(void *flag)
{
    usleep(100000);
    atomic_store((atomic_bool *)flag, true);
    return NULL;
}

TEST(the_flag_ends_requests_that_wait)
{
    atomic_bool cancel = false;
    pthread_t thread;
    struct http *h = part("silent", (struct http_options){.cancel = &cancel});
    struct stream s = {.most = 0};
    struct err err = {0};
    int status;
    size_t n;
    char *answer;
    pthread_create(&thread, NULL, set_soon, &cancel);
    assert_false(http_call(h, "/call", NULL, 60, &status, &answer, &n, &err));
    pthread_join(thread, NULL);
    assert_int_equal(err.kind, ERR_CANCELLED);
    atomic_store(&cancel, false);
    pthread_create(&thread, NULL, set_soon, &cancel);
    assert_ok(http_stream(h, "/completion", "{}", on_event, &s, &err), err);
    pthread_join(thread, NULL);
    http_close(h);
}

TEST(the_flag_ends_a_stream_between_two_events)
{
    atomic_bool cancel = false;
    struct http *h = part("endless", (struct http_options){.cancel = &cancel});
    struct stream s = {.cancel = &cancel};
    assert_ok(http_stream(h, "/completion", "{}", on_event, &s, &s.err), s.err);
    assert_int_equal(s.events, 1);
    http_close(h);
}
