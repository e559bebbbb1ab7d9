#include <algorithm>
#include <string>

#include "kernels/rows/dropout.h"
#include "kernels/rows/embedding.h"
#include "ops/ops.h"
#include "ops/weight_gradient.h"

namespace heed {
namespace {

// One of the tables that are added up, and the ids that select its rows.
struct Table {
  Weight weight;
  const int32_t* ids;
  float scale = 1;
  int64_t first_row = 0;  // the row that id 0 selects
};

struct Tables {
  std::array<Table, 3> list;
  size_t count = 0;

  void add(const Table& table) {
    HEED_CHECK(table.weight.value.contiguous(), "embed: a table must be contiguous");
    list[count++] = table;
  }
};

struct Record {
  Gradient* out;
  Tables tables;
  kernels::Dropout drop;
  int32_t frozen_id;

  void backward(Ctx& ctx);
};

void check_ids(std::span<const int32_t> ids, int64_t limit, int offset, const char* what) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = int64_t{ids[i]} + offset;
    if (id >= 0 && id < limit) continue;
    throw Error(
        ErrorCode::invalid_argument,
        std::string(what) + " " + std::to_string(ids[i]) + " in row " + std::to_string(i) +
            " is outside the table of " + std::to_string(limit) + " rows" +
            (offset ? ", of which the first " + std::to_string(offset) + " are reserved" : ""));
  }
}

// d table[ids[r]] += scale · d_out[r], for each table.
void Record::backward(Ctx& ctx) {
  const Mat dy = ctx.tape->arrived(ctx, *out);
  if (drop.p > 0) {
    ctx.parallel(dy.size(), kElementGrain, [&](int64_t begin, int64_t end) {
      kernels::dropout(drop, begin, dy.data + begin, dy.data + begin, end - begin);
    });
  }
  // Tokens last: then the gradient of a frozen one can be cleared.
  for (size_t t = tables.count; t-- > 0;) {
    const Table& table = tables.list[t];
    if (!table.weight.gradient) continue;
    if (t == 0 && frozen_id >= 0) {
      ctx.parallel(dy.rows, row_grain(dy.cols), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          if (table.ids[r] == frozen_id) std::fill_n(dy.row(r), dy.cols, 0.0f);
        }
      });
    }
    const Mat dw = zeroed_gradient(ctx, table.weight);
    // Ids repeat, so the threads share out columns, not rows.
    ctx.parallel(dy.cols, column_grain(16), [&](int64_t begin, int64_t end) {
      kernels::scatter_add_rows({.dy = dy.data + begin,
                                 .stride = dy.stride,
                                 .ids = table.ids,
                                 .scale = table.scale,
                                 .dtable = dw.row(table.first_row) + begin,
                                 .table_stride = dw.stride,
                                 .rows = dy.rows,
                                 .cols = end - begin});
    });
  }
}

// y[r] = scale · table[ids[r]] of a table in fewer bytes.
void gather_packed_rows(const Table& table, int64_t begin, int64_t end, Mat y) {
  for (int64_t r = begin; r < end; ++r) {
    float* row = y.row(r);
    kernels::dequantize_packed_row(table.weight.packed, table.ids[r] + table.first_row, row);
    for (int64_t i = 0; i < y.cols; ++i) row[i] *= table.scale;
  }
}

}  // namespace

Var embed(Ctx& ctx, const Batch& batch, const Embedding& e) {
  const int64_t rows = batch.rows(), width = e.tokens.value.cols;
  check_dropout(e.dropout);
  Tables tables;
  const bool has_features = batch.has_features();
  if (has_features) {
    HEED_CHECK(batch.tokens.empty(), "embed: a batch must have tokens or features, not both");
    HEED_CHECK(batch.features.cols == width, "embed: features must have the embedding's width");
  } else {
    check_ids(batch.tokens, e.tokens.value.rows, 0, "token id");
    tables.add({e.tokens, batch.tokens.data(), e.scale});
  }
  if (e.positions) {
    HEED_CHECK(e.positions.value.cols == width, "embed: positions must have the width of tokens");
    HEED_CHECK(std::ssize(batch.positions) == rows, "embed: each row must have a position");
    check_ids(batch.positions, e.positions.value.rows, e.position_offset, "position");
    tables.add({e.positions, batch.positions.data(), 1, e.position_offset});
  }
  if (e.token_types) {
    HEED_CHECK(e.token_types.value.cols == width,
               "embed: token_types must have the width of tokens");
    HEED_CHECK(std::ssize(batch.token_types) == rows, "embed: each row must have a token type");
    check_ids(batch.token_types, e.token_types.value.rows, 0, "token type");
    tables.add({e.token_types, batch.token_types.data()});
  }
  Var y = ctx.activation(rows, width);
  ctx.parallel(rows, row_grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; has_features && r < end; ++r) {
      std::copy_n(batch.features.row(r), width, y.value.row(r));
    }
    for (size_t t = 0; t < tables.count; ++t) {
      const Table& table = tables.list[t];
      if (table.weight.packed) {
        HEED_CHECK(t == 0 && !has_features && !ctx.tape,
                   "embed: only tokens may be packed, and in inference");
        gather_packed_rows(table, begin, end, y.value);
        continue;
      }
      kernels::gather_rows({.table = table.weight.value.row(table.first_row),
                            .ids = table.ids + begin,
                            .scale = table.scale,
                            .accumulate = has_features || t > 0,
                            .y = y.value.row(begin),
                            .rows = end - begin,
                            .cols = width});
    }
  });
  if (!ctx.tape) return y;
  const kernels::Dropout drop{e.dropout > 0 ? ctx.next_site() : RandomKey{}, e.dropout};
  if (drop.p > 0) {
    ctx.parallel(y.value.size(), kElementGrain, [&](int64_t begin, int64_t end) {
      kernels::dropout(drop, begin, y.value.data + begin, y.value.data + begin, end - begin);
    });
  }
  ctx.tape->record(y.gradient, Record{y.gradient, tables, drop, has_features ? -1 : e.frozen_id});
  return y;
}

}  // namespace heed
