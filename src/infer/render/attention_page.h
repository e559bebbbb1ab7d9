// The page of attention_html(), with @DATA@ where the numbers go. From attention_page.html.
#pragma once

#include <string_view>

namespace heed {

extern const std::string_view kAttentionPage;

}  // namespace heed
