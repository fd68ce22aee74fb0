/* Random matrices of every type in the device's layout, and packed rows of activations. They are packed by
 * kernels/cuda/device/layout.h, independently of kernels/cuda/pack.h. */
#pragma once

#include "kernels/cuda/device/layout.h"
#include "kernels/half.h"
#include "tests/rigs/cuda_numbers.h"

#define NOBODY_WROTE 0xcb /* fills rows that do not exist; the emulator ends a kernel that reads them */

/* A matrix in the device's layout, and its values in plain rows. */
struct test_matrix {
    struct dev_matrix m = {};
    std::vector<float> values; /* (rows, cols), after rounding to the type */

    test_matrix(enum weight_type type, uint32_t rows, uint32_t cols, bool permuted)
    {
        m.type = type;
        m.rows = rows;
        m.cols = cols;
        m.strips = (rows + STRIP - 1) / STRIP + (permuted ? 1 : 0);
        m.units = units_of(cols);
        values.resize((size_t)rows * cols);
        std::vector<uint32_t> source(m.strips * STRIP, UINT32_MAX);
        for (uint32_t r = 0; r < rows; r++)
            source[permuted ? (r * 7 + 3) % source.size() : r] = r;
        for (uint32_t r = 0; permuted && r < rows; r++) /* restores a permutation after random writes */
            source[r + STRIP - 1] = rows - 1 - r;
        for (uint32_t s = 0; permuted && s < source.size(); s++)
            if (s < STRIP - 1 || s >= STRIP - 1 + rows)
                source[s] = UINT32_MAX;
        if (permuted)
            m.source = on_device(source);
        fill(source);
    }
    test_matrix(const test_matrix &) = delete;
    ~test_matrix()
    {
        cudaFree((void *)m.quants);
        cudaFree((void *)m.scales);
        cudaFree((void *)m.source);
    }

  private:
    float
    unit_value(uint32_t packed, uint32_t k, uint8_t *quants, uint16_t *scales)
    {
        const uint32_t r = packed % STRIP;
        const size_t unit = (size_t)(packed / STRIP) * m.units + k / UNIT, at = unit * STRIP * UNIT;
        uint16_t *halves = (uint16_t *)(void *)quants, *scale = &scales[unit * STRIP + r % 8 * 2 + r / 8];
        if (m.type == WEIGHT_Q8_0) {
            const int8_t q = (int8_t)(below(255) - 127);
            if (k % UNIT == 0)
                *scale = f32_to_f16(uniform() * 0.01f);
            quants[at + unit_place(r, k % UNIT)] = (uint8_t)q;
            return (float)q * f16_to_f32(*scale);
        }
        uint16_t *half = &halves[at + unit_place_16(r, k % UNIT)];
        if (m.type == WEIGHT_BF16) {
            *half = (uint16_t)(bits_of_float(uniform()) >> 16);
            return bf16_to_f32(*half);
        }
        *half = f32_to_f16(uniform());
        return f16_to_f32(*half);
    }

    /* Packs a value of a type with pairs of units. Columns come in ascending order: the first column of a scale chooses
     * it. */
    float
    pair_value(uint32_t packed, uint32_t k, uint8_t *quants, uint8_t *scales)
    {
        const uint32_t r = packed % STRIP, second = r / 8, unit = k % PAIR / UNIT, step = k % PAIR / 16;
        const uint32_t pair_bytes = m.type == WEIGHT_Q6_K ? PAIR_NIBBLES + PAIR_HIGHS : PAIR_NIBBLES;
        uint8_t *of_strip = scales + packed / STRIP * strip_scales(m.type, m.units);
        uint8_t *of_pair = of_strip + k / PAIR * PAIR_SCALES + r % 8 * 8;
        uint16_t *d = (uint16_t *)(void *)(of_strip + m.units / 2 * PAIR_SCALES) +
                      (k / SUPER * STRIP + r % 8 * 2 + second) * super_scales(m.type);
        uint8_t *pair = quants + ((size_t)(packed / STRIP) * (m.units / 2) + k / PAIR) * pair_bytes;
        const uint32_t q = below(m.type == WEIGHT_Q6_K ? 64 : 16);
        pair[nibble_place(r, k % UNIT)] |= (uint8_t)((q & 15) << (4 * unit));
        if (m.type == WEIGHT_Q4_0) {
            uint16_t *scale = (uint16_t *)(void *)of_pair + unit * 2 + second;
            if (k % UNIT == 0)
                *scale = f32_to_f16(uniform() * 0.1f);
            return f16_to_f32(*scale) * ((float)q - 8);
        }
        if (k % SUPER == 0)
            for (uint32_t i = 0; i < super_scales(m.type); i++)
                d[i] = f32_to_f16(uniform() * 0.01f);
        if (m.type == WEIGHT_Q4_K) {
            uint8_t *scale = of_pair + second * 4 + unit, *least = scale + 2;
            if (k % UNIT == 0) {
                *scale = (uint8_t)below(64);
                *least = (uint8_t)below(64);
            }
            return f16_to_f32(d[0]) * (float)*scale * (float)q - f16_to_f32(d[1]) * (float)*least;
        }
        int8_t *scale = (int8_t *)of_pair + second * 4 + step;
        if (k % 16 == 0)
            *scale = (int8_t)(below(256) - 128);
        pair[PAIR_NIBBLES + high_place(r, k % UNIT)] |= (uint8_t)(q >> 4 << (4 * unit + 2 * second));
        return f16_to_f32(d[0]) * (float)*scale * ((float)q - 32);
    }

    void
    fill(const std::vector<uint32_t> &source)
    {
        std::vector<uint8_t> quants((size_t)m.strips * m.units * STRIP * UNIT * 2);
        std::vector<uint16_t> scales(m.strips * strip_scales(m.type, m.units) / sizeof(uint16_t));
        for (uint32_t packed = 0; packed < source.size(); packed++)
            for (uint32_t k = 0; source[packed] < m.rows && k < m.cols; k++) {
                float *value = &values[(size_t)source[packed] * m.cols + k];
                *value = has_pairs(m.type) ? pair_value(packed, k, quants.data(), (uint8_t *)scales.data())
                                           : unit_value(packed, k, quants.data(), scales.data());
            }
        if (m.type == WEIGHT_F32) {
            m.quants = on_device(values);
            return;
        }
        m.quants = on_device(quants);
        m.scales = on_device(scales);
    }
};

/* Activations of n rows after rounding, and packed in whole tiles. Rows after n contain NOBODY_WROTE; kernels must not
 * read them. */
struct test_rows {
    std::vector<float> values; /* (n, cols) */
    void *packed;

    test_rows(uint32_t n, uint32_t cols, bool exact) : values((size_t)n * cols)
    {
        for (float &x : values)
            x = exact ? uniform() : f16_to_f32(f32_to_f16(uniform()));
        pack(n, cols, exact);
    }
    /* Copies these rows in this order. */
    test_rows(const test_rows &from, const std::vector<uint32_t> &which, uint32_t cols, bool exact)
    {
        for (uint32_t r : which)
            values.insert(values.end(), from.values.begin() + (size_t)r * cols,
                          from.values.begin() + (size_t)(r + 1) * cols);
        pack((uint32_t)which.size(), cols, exact);
    }
    test_rows(const test_rows &) = delete;
    ~test_rows()
    {
        cudaFree(packed);
    }

  private:
    void
    pack(uint32_t n, uint32_t cols, bool exact)
    {
        const uint32_t units = units_of(cols), tiles = (n + PASS_ROWS - 1) / PASS_ROWS * PASS_ROWS;
        if (exact) {
            packed = on_device(values);
            return;
        }
        std::vector<uint16_t> halves((size_t)tiles * units * UNIT);
        memset(halves.data(), NOBODY_WROTE, halves.size() * sizeof halves[0]);
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t k = 0; k < units * UNIT; k++)
                halves[packed_place(units, r, k)] = k >= cols ? 0 : f32_to_f16(values[(size_t)r * cols + k]);
        packed = on_device(halves);
    }
};
