// Loops over plain arrays: sums, products, and reductions of columns and of whole arrays.
//
// add … multiply: the arrays may be the same or disjoint, and cutting [0, n) anywhere gives the
// same bits.
#pragma once

#include <cstdint>

namespace heed::kernels {

void add(const float* x, float* y, int64_t n);                         // y += x
void scale(float factor, const float* x, float* y, int64_t n);         // y = factor x
void multiply_add(float factor, const float* x, float* y, int64_t n);  // y += factor x
void multiply(const float* x, const float* z, float* y, int64_t n);    // y = x z

// sum [cols] = (sum +) the sum of the rows of x [rows, cols]: the gradient of a bias.
struct ColumnSum {
  const float* x;
  int64_t stride;  // from one row of x to the next, in floats
  float* sum;
  bool accumulate = false;
  int64_t rows, cols;
};

// A column's sum is made in an order that depends on `rows` alone, so the columns may be split over
// threads at will. Rows are added in blocks, which keeps the error of 100,000 rows near that of a
// few hundred.
void column_sum(const ColumnSum& columns);

// In double throughout, where the product of two floats is exact; same input, same bits.
double sum_of_squares(const float* x, int64_t n);
double dot(const float* x, const float* y, int64_t n);

}  // namespace heed::kernels
