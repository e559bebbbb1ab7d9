// Views of row-major matrices. They do not own: an Arena, the Parameters or a mapped file does.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/check.h"

namespace heed {

// `rows` × `cols` floats, rows `stride` apart.
template <class Float>
struct MatView {
  Float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  MatView() = default;
  MatView(Float* d, int64_t r, int64_t c) : MatView(d, r, c, c) {}
  MatView(Float* d, int64_t r, int64_t c, int64_t s) : data(d), rows(r), cols(c), stride(s) {}
  // A view to read from any view to write.
  template <class Other>
  requires(!std::is_same_v<Other, Float> && std::is_convertible_v<Other*, Float*>)
      MatView(const MatView<Other>& m)
      : MatView(m.data, m.rows, m.cols, m.stride) {}

  Float* row(int64_t r) const { return data + r * stride; }
  int64_t size() const { return rows * cols; }
  bool contiguous() const { return stride == cols || rows <= 1; }

  MatView columns(int64_t begin, int64_t count) const {
    HEED_DCHECK(begin >= 0 && begin + count <= cols, "columns must be within the matrix");
    return {data ? data + begin : nullptr, rows, count, stride};
  }
};

using Mat = MatView<float>;
using ConstMat = MatView<const float>;

}  // namespace heed
