// One query row of attention: scaling, soft cap and masks of scores.

// Per-target include guard, as Highway's own -inl.h files have it.
#if defined(HEED_KERNELS_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNELS_ATTENTION_ROWS_INL_H_
#undef HEED_KERNELS_ATTENTION_ROWS_INL_H_
#else
#define HEED_KERNELS_ATTENTION_ROWS_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "kernels/attention/attention_tiles.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/simd_types-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Scale and soft cap of raw scores.
struct Scoring {
  FloatVec scale, cap, cap_inverse;
  bool capped;

  explicit Scoring(const Attention& a)
      : scale(hn::Set(FloatTag(), a.scale)),
        cap(hn::Set(FloatTag(), a.soft_cap)),
        cap_inverse(hn::Set(FloatTag(), a.soft_cap > 0 ? 1 / a.soft_cap : 0)),
        capped(a.soft_cap > 0) {}

  HWY_INLINE FloatVec operator()(FloatVec raw) const {
    const FloatTag d;
    const FloatVec scaled = hn::Mul(raw, scale);
    return capped ? hn::Mul(cap, Tanh(d, hn::Mul(scaled, cap_inverse))) : scaled;
  }
  // The derivative with respect to the raw score, given the result.
  HWY_INLINE FloatVec derivative(FloatVec score) const {
    if (!capped) return scale;
    const FloatVec t = hn::Mul(score, cap_inverse);
    return hn::Mul(scale, hn::NegMulAdd(t, t, hn::Set(FloatTag(), 1.0f)));
  }
};

// Which columns of a tile one query sees.
class RowMask {
 public:
  RowMask(const ScoreTile& tile, int64_t query) {
    const Problem& p = tile.p();
    const Problem::Span seen = p.visible(query);
    begin_ = static_cast<int32_t>(std::clamp<int64_t>(seen.begin - tile.key, 0, kKeyTile));
    end_ = static_cast<int32_t>(std::clamp<int64_t>(seen.end - tile.key, 0, kKeyTile));
    if (p.a.global_keys) {
      global_ = p.a.global_keys + p.first_key + tile.key;
      const int64_t position = p.first_position + query;
      const int64_t reach = p.a.after > 0 ? p.keys : std::min(p.keys, position + 1);
      global_end_ = std::clamp<int64_t>(reach - tile.key, 0, kKeyTile);
    }
    all_ = begin_ <= tile.column && end_ >= tile.column + tile.columns;
  }

  // Scores of columns from `column`, minus infinity where masked.
  HWY_INLINE FloatVec apply(FloatVec scores, int64_t column) const {
    if (all_) return scores;
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const auto at = hn::Iota(di, static_cast<int32_t>(column));
    auto seen = hn::AndNot(hn::Lt(at, hn::Set(di, begin_)), hn::Lt(at, hn::Set(di, end_)));
    if (global_) {
      HWY_ALIGN int32_t flags[kColumnStep];
      for (int64_t i = 0; i < kColumnStep; ++i) {
        flags[i] = column + i < global_end_ && global_[column + i] ? 1 : 0;
      }
      seen = hn::Or(seen, hn::Gt(hn::Load(di, flags), hn::Zero(di)));
    }
    return hn::IfThenElse(hn::RebindMask(d, seen), scores,
                          hn::Set(d, -std::numeric_limits<float>::infinity()));
  }

 private:
  int32_t begin_, end_;
  const uint8_t* global_ = nullptr;
  int64_t global_end_ = 0;
  bool all_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
