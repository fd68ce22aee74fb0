/* A simulated session that is controlled by a tuner's requests. Policy, knob and prompt determine the times of its
 * runs. */
#ifndef TESTS_RIGS_RACE_RIG_H
#define TESTS_RIGS_RACE_RIG_H

#include "engine/tune/tuner.h"

#define RACE_RIG_PROMPTS 18 /* three categories of six */

struct simulated_race {
    struct run_info info; /* policies ar, sd and ngram with a knob `k`, and swift */
    struct tuner *tuner;
    struct race_prompt prompts[RACE_RIG_PROMPTS];
    char texts[RACE_RIG_PROMPTS][24];
    double token_s, run_s;     /* of autoregressive decoding; of a prompt */
    double start_s;            /* of a server for each change of the setting; 0: none is launched */
    uint32_t starts;           /* of servers */
    char serves[16];           /* the policy of the running server, with */
    double serves_k;           /* its knob */
    double noise;              /* standard deviation of the logarithm of a run's time */
    uint64_t random;           /* state of its random numbers */
    double held_out[2];        /* speeds of sd on held-out prompts, at k = 4 and others; 0: as in heats */
    double held_out_noise;     /* the noise of held-out runs at k = 4; 0: `noise` */
    uint32_t text_tokens;      /* of every run; 0: as many as the session generates */
    bool forecasts;            /* sd and ngram have forecasts, which are correct */
    const char *differs;       /* a policy with another text; NULL: none */
    const char *fails;         /* a policy whose runs end with an error; NULL: none */
    char policy[16], probe[8]; /* requested ones */
    double k;
    uint32_t prompt, runs, costs; /* runs and measurements of costs that were requested */
    char log[64]; /* the first requests: the number of a draft model, probe mode (a, p), run (r), costs (c) */
};

/* Opens a tuner; the policies and the request below are valid until race_rig_close(). */
void race_rig_open(struct simulated_race *);
void race_rig_close(struct simulated_race *);
struct tune_request race_rig_request(const struct simulated_race *, double time_s);
struct run_host race_rig_host(struct simulated_race *);
/* Requests runs and simulates them, at most n. Returns tuner_next()'s result. */
bool race_rig_run(struct simulated_race *, uint32_t n, struct err *);
/* Times autoregressive decoding, on average: sd is fastest at k = 4. */
double race_rig_speed(const char *policy, double k);

#endif
