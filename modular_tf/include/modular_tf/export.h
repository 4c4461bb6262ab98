/* TF_CAPI_EXPORT: marks the functions of this API, on the side that imports them as well as on the
 * side that defines them (TF_InitPlugin and SE_InitPlugin are defined by the plugin). */
#ifndef MODULAR_TF_EXPORT_H_
#define MODULAR_TF_EXPORT_H_

#ifndef TF_CAPI_EXPORT
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#endif

#endif
