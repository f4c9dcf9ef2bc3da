// Uses freed memory, for a sanitizer to find.
#include "check.h"

static char *volatile kept;

int main(void) {
  kept = (char *)malloc(16);
  free(kept);
  kept[3] = 'x';
  return tm_abi_check(TM_ABI) == TM_STATUS_OK ? 0 : 1;
}
