/* Which log lines the environment asks for. Read once, at the first line. [any thread] */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* TF_CPP_MIN_LOG_LEVEL: lines below this severity are dropped. Default 0, which drops none. */
int mtf_min_log_level(void);

/* TF_CPP_MAX_VLOG_LEVEL: VLOG lines above this level are dropped. Default 0. */
int mtf_max_vlog_level(void);

#ifdef __cplusplus
}
#endif
