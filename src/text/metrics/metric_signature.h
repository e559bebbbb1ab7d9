// What BLEU, chrF and TER have in common: checks of their input, and the signature.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/metrics.h"

namespace heed {

// Throws invalid_argument unless there is something to compare, each hypothesis with one or more
// references. `metric` is what the message calls the caller: "bleu".
void check_segments(const std::string& metric, const std::vector<std::string>& hypotheses,
                    const References& references);

// sacreBLEU's signature: "nrefs:2|case:mixed|…|version:2.6.0", the fields in the order given. The
// version is that of the sacreBLEU whose scores ours equal: a signature tells others how to repeat
// the score, and that is the tool they will use.
std::string metric_signature(const References& references,
                             const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace heed
