// Placeholders: parts of a text that a translation must have unchanged.
//
//   for (TextSpan s : find_placeholders("Hi {name}, see https://a.org/?q=1."))
//     …                                                   // "{name}", "https://a.org/?q=1"
//
// They are:
//   {name} {0} {} {{name}} ${name} #{name} %{name}     template variables
//   %s %d %1$s %.2f %-5ld %(name)s %1 %%               printf, Python and Qt
//   <ph0> </g1> <x2/> <3>                              tags whose name ends in a digit
//   https://a.org/b www.a.org a.org/b name@a.org       URLs and e-mail addresses
//   @name #name                                        mentions and hashtags, not "#5"
//   emoji, with their modifiers and joiners
#pragma once

#include <string_view>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

// Their byte spans, in order and disjoint. Takes time linear in the text.
std::vector<TextSpan> find_placeholders(std::string_view text);

}  // namespace heed
