// Whether the write-protected copies of plugins' tables (mtf_readonly_copy) are as they were made.
#pragma once

namespace mtf {

// Whether somebody has overwritten one of them, through /proc/self/mem or with other rights for its
// pages, or unmapped it. Any code of the process may have, and a call by such a table ends anywhere.
// Of more than 4 096 tables some are not compared. [signal handlers]
bool tables_were_overwritten() noexcept;

}  // namespace mtf
