// Moved to base, where data/ sees it too.
#pragma once

#include "base/enum_names.h"
