/* An acceptance head laid out for being asked again and again, which is what drafting with SpecDec++ does.
 *
 * Weights lie by groups of outputs, input by input, so that a vector holds outputs side by side. Each output adds its products
 * in the order of the inputs, PIECE of them at a time, and the pieces' sums in their order; products and sums are rounded
 * singly. So p̂ hangs neither on how wide the processor's vectors are nor on the number of threads. */
#ifndef ENGINE_TRAINED_ACCEPT_PREDICTOR_H
#define ENGINE_TRAINED_ACCEPT_PREDICTOR_H

#include "engine/trained/accept_head.h"

struct accept_predictor;

/* Copies the head's weights as they are now. threads: 0 or 1 for the caller's alone; small heads use no more. */
bool accept_predictor_open(struct accept_predictor **, const struct accept_head *, uint32_t threads, struct err *);
void accept_predictor_close(struct accept_predictor *); /* NULL: nothing */

/* p̂ of one row; x (width) is norm(h). One caller at a time. */
double accept_predictor_ask(struct accept_predictor *, const float *x);

/* Bytes that one takes, to within a page; n_own: blocks with weights of their own. */
uint64_t accept_predictor_bytes(uint32_t width, uint32_t n_own);

#endif
