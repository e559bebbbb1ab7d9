#include "cli/verbs.h"

namespace heed::cli {

// HEED_VERBS is the list in CMakeLists.txt: HEED_VERB(bench) HEED_VERB(…).
#define HEED_VERB(name) void add_##name(Program& program);
HEED_VERBS
#undef HEED_VERB

void add_verbs(Program& program) {
#define HEED_VERB(name) add_##name(program);
  HEED_VERBS
#undef HEED_VERB
}

}  // namespace heed::cli
