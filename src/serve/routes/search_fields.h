// The search options as fields of a request, from the list in heed/search.h.
//
//   struct Call { SearchOverrides search; };
//   void describe(Fields& fields, Call& call) { describe_search(fields, call.search, {"nbest"}); }
//   SearchOptions options = apply(model.search_options(), call.search);
#pragma once

#include <initializer_list>
#include <string_view>

#include "heed/search.h"
#include "serve/routes/fields.h"

namespace heed::serve {

// All options with an HTTP name but those in `except` (names of SearchOptions' members).
void describe_search(Fields& fields, SearchOverrides& search,
                     std::initializer_list<std::string_view> except = {});

}  // namespace heed::serve
