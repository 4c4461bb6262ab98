/* A library of the fixture plugin's own, to be found beside it through $ORIGIN. */
__attribute__((visibility("default"))) int fixture_companion(void);
int fixture_companion(void) { return 42; }
