// Shared by BLEU, chrF and TER: input checks and the signature.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "heed/metrics.h"

namespace heed {

// Throws invalid_argument unless there are segments, each with one or more references. `metric` is
// the name in the message: "bleu".
void check_segments(const std::string& metric, const std::vector<std::string>& hypotheses,
                    const References& references);

// sacreBLEU's signature: "nrefs:2|case:mixed|…|version:2.6.0", the fields in the order given. The
// version is that of the sacreBLEU that gives equal scores: the signature is for reproducing them.
std::string metric_signature(const References& references,
                             const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace heed
