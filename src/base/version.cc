#include "heed/version.h"

namespace heed {

const char* version() { return HEED_VERSION; }  // from project() in CMakeLists.txt

}  // namespace heed
