/* A GPU for tests: a library with the interface of NVML that keeps MIG instances in a file.
 *
 * Build:  cc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 nvml.c
 *
 * The file whose path is in FAKE_NVML is the state of a machine, one fact on each line (nvml_machine.py writes it):
 *
 *   driver VERSION          clock SECONDS (-1: the real one)          scale FACTOR (of the times of operations)
 *   made COUNT (of UUIDs)   same_uuids 0|1 (an instance with the numbers of an earlier one gets its UUID, too)
 *   gpu UUID BUS MODE PENDING MIB NAME
 *     profile ENUM ID SLICES MEMORY MAX SM MIB CREATE DESTROY STARTS NAME
 *     gi ID PROFILE START UNTIL (0: exists; otherwise destroyed, but shown until that second)
 *     ci GI ID PROFILE UUID
 *     process GI CI PID BYTES
 *     fault NAME TIMES SECONDS (TIMES -1: always)
 *
 * What stands below a gpu belongs to it; GPUs are numbered in the order of the file. Several processes may use the file
 * at once. Every change is a line of the file FAKE_NVML.log. Faults:
 *
 *   no-permission   whatever needs root is refused
 *   insufficient    no GPU instance is created, although there is room
 *   no-compute      a GPU instance gets no compute instance
 *   in-use          nothing is destroyed
 *   linger          a GPU instance is destroyed with success, but stays for SECONDS
 *   slow            an operation takes SECONDS more
 *   lost            the GPU has fallen off the bus
 *   kill            the process dies at the TIMES-th half of an operation from now on, once
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef unsigned int uint;
typedef unsigned long long u64;
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7,
       DRIVER_NOT_LOADED = 9, LOST = 15, IN_USE = 19, INSUFFICIENT = 23, VERSION_MISMATCH = 25 };
enum { PROFILES = 24, INSTANCES = 32, PROCESSES = 16, FAULTS = 12, GPUS = 16, TEXT = 96 };

struct profile { uint kind, id, slices, memory, most, sm, starts[16], count; u64 mib; double create, destroy; char name[TEXT]; };
struct gi { uint id, profile, start; double until; };
struct ci { uint gi, id, profile; char uuid[TEXT]; };
struct process { uint gi, ci, pid; u64 bytes; };
struct fault { char name[TEXT]; int times; double seconds; };
struct gpu {
  char uuid[TEXT], bus[TEXT], name[TEXT];
  uint mode, pending; u64 mib;
  struct profile profiles[PROFILES]; int n_profiles;
  struct gi gis[INSTANCES]; int n_gis;
  struct ci cis[INSTANCES]; int n_cis;
  struct process processes[PROCESSES]; int n_processes;
  struct fault faults[FAULTS]; int n_faults;
};
static struct { char driver[TEXT]; double clock, scale; int made, same, n; struct gpu gpus[GPUS]; } S;

/* Handles: interned, and good for one instance only. */
struct handle { char kind; char gpu[TEXT]; uint gi, ci; };
static struct handle *handles[1 << 16];
static int n_handles;
static int initialised;

/* Without FAKE_NVML there is no machine: a process that has loaded the library once keeps it. */
static int ready(void) { return initialised && getenv("FAKE_NVML"); }

static void *intern(char kind, const char *gpu, uint gi, uint ci) {
  for (int i = 0; i < n_handles; i++)
    if (handles[i]->kind == kind && handles[i]->gi == gi && handles[i]->ci == ci && !strcmp(handles[i]->gpu, gpu))
      return handles[i];
  struct handle *made = calloc(1, sizeof *made);
  made->kind = kind, made->gi = gi, made->ci = ci;
  strcpy(made->gpu, gpu);
  return handles[n_handles++] = made;
}

/* The state */
static int lock_fd = -1;

static int locked(const char *suffix) {
  char path[4096];
  snprintf(path, sizeof path, "%s.%s", getenv("FAKE_NVML"), suffix);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  flock(fd, LOCK_EX);
  return fd;
}

static double now(void) {
  struct timespec t;
  if (S.clock >= 0) return S.clock;
  clock_gettime(CLOCK_REALTIME, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static struct gpu *gpu_by(const char *uuid) {
  for (int i = 0; i < S.n; i++) if (!strcmp(S.gpus[i].uuid, uuid)) return &S.gpus[i];
  return NULL;
}

static void drop_ci(struct gpu *g, int at) { g->cis[at] = g->cis[--g->n_cis]; }

static struct stat seen;
static int dirty;

static void forget_lingering(void) { /* what has lingered long enough is gone */
  for (int i = 0; i < S.n; i++)
    for (int k = S.gpus[i].n_gis - 1; k >= 0; k--)
      if (S.gpus[i].gis[k].until > 0 && S.gpus[i].gis[k].until <= now()) S.gpus[i].gis[k] = S.gpus[i].gis[--S.gpus[i].n_gis];
}

static void load(void) {
  char line[1024], word[TEXT], starts[TEXT];
  int fd = locked("lock");
  lock_fd = fd;
  struct stat is;
  if (stat(getenv("FAKE_NVML"), &is)) memset(&is, 0, sizeof is);
  if (is.st_ino == seen.st_ino && is.st_size == seen.st_size && is.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
      is.st_mtim.tv_nsec == seen.st_mtim.tv_nsec && is.st_dev == seen.st_dev && is.st_ino) {
    forget_lingering();
    return;
  }
  seen = is;
  memset(&S, 0, sizeof S);
  S.clock = -1, S.scale = 1;
  FILE *f = fopen(getenv("FAKE_NVML"), "r");
  struct gpu *g = NULL;
  while (f && fgets(line, sizeof line, f)) {
    int past = 0;
    if (sscanf(line, "%95s %n", word, &past) != 1) continue;
    char *rest = line + past;
    if (!strcmp(word, "driver")) sscanf(rest, "%95s", S.driver);
    else if (!strcmp(word, "clock")) sscanf(rest, "%lf", &S.clock);
    else if (!strcmp(word, "scale")) sscanf(rest, "%lf", &S.scale);
    else if (!strcmp(word, "made")) sscanf(rest, "%d", &S.made);
    else if (!strcmp(word, "same_uuids")) sscanf(rest, "%d", &S.same);
    else if (!strcmp(word, "gpu")) {
      g = &S.gpus[S.n++];
      sscanf(rest, "%95s %95s %u %u %llu %95[^\n]", g->uuid, g->bus, &g->mode, &g->pending, &g->mib, g->name);
    } else if (!strcmp(word, "profile")) {
      struct profile *p = &g->profiles[g->n_profiles++];
      sscanf(rest, "%u %u %u %u %u %u %llu %lf %lf %95s %95[^\n]", &p->kind, &p->id, &p->slices, &p->memory, &p->most,
             &p->sm, &p->mib, &p->create, &p->destroy, starts, p->name);
      for (char *s = strtok(starts, ","); s; s = strtok(NULL, ",")) p->starts[p->count++] = atoi(s);
    } else if (!strcmp(word, "gi")) {
      struct gi *i = &g->gis[g->n_gis++];
      sscanf(rest, "%u %u %u %lf", &i->id, &i->profile, &i->start, &i->until);
    } else if (!strcmp(word, "ci")) {
      struct ci *i = &g->cis[g->n_cis++];
      sscanf(rest, "%u %u %u %95s", &i->gi, &i->id, &i->profile, i->uuid);
    } else if (!strcmp(word, "process")) {
      struct process *p = &g->processes[g->n_processes++];
      sscanf(rest, "%u %u %u %llu", &p->gi, &p->ci, &p->pid, &p->bytes);
    } else if (!strcmp(word, "fault")) {
      struct fault *t = &g->faults[g->n_faults++];
      sscanf(rest, "%95s %d %lf", t->name, &t->times, &t->seconds);
    }
  }
  if (f) fclose(f);
  forget_lingering();
}

static void save(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s.new", getenv("FAKE_NVML"));
  FILE *f = fopen(path, "w");
  fprintf(f, "driver %s\nclock %.9f\nscale %.9g\nmade %d\nsame_uuids %d\n", S.driver, S.clock, S.scale, S.made, S.same);
  for (struct gpu *g = S.gpus; g < S.gpus + S.n; g++) {
    fprintf(f, "gpu %s %s %u %u %llu %s\n", g->uuid, g->bus, g->mode, g->pending, g->mib, g->name);
    for (struct profile *p = g->profiles; p < g->profiles + g->n_profiles; p++) {
      fprintf(f, "profile %u %u %u %u %u %u %llu %.9g %.9g ", p->kind, p->id, p->slices, p->memory, p->most, p->sm, p->mib,
              p->create, p->destroy);
      for (uint i = 0; i < p->count; i++) fprintf(f, "%s%u", i ? "," : "", p->starts[i]);
      fprintf(f, " %s\n", p->name);
    }
    for (struct gi *i = g->gis; i < g->gis + g->n_gis; i++) fprintf(f, "gi %u %u %u %.9f\n", i->id, i->profile, i->start, i->until);
    for (struct ci *i = g->cis; i < g->cis + g->n_cis; i++) fprintf(f, "ci %u %u %u %s\n", i->gi, i->id, i->profile, i->uuid);
    for (struct process *p = g->processes; p < g->processes + g->n_processes; p++)
      fprintf(f, "process %u %u %u %llu\n", p->gi, p->ci, p->pid, p->bytes);
    for (struct fault *t = g->faults; t < g->faults + g->n_faults; t++)
      fprintf(f, "fault %s %d %.9g\n", t->name, t->times, t->seconds);
  }
  fclose(f);
  rename(path, getenv("FAKE_NVML"));
  if (stat(getenv("FAKE_NVML"), &seen)) memset(&seen, 0, sizeof seen);
  dirty = 0;
}

static void unload(void) {
  if (dirty) save();
  close(lock_fd);
}

static void note(const char *verb, const struct gpu *g, uint gi, const char *what) {
  char path[4096];
  snprintf(path, sizeof path, "%s.log", getenv("FAKE_NVML"));
  FILE *f = fopen(path, "a");
  fprintf(f, "%s %s %u %s\n", verb, g->uuid, gi, what);
  fclose(f);
}

/* Takes one of a fault; returns it, or NULL where there is none. */
static struct fault *fault(struct gpu *g, const char *name) {
  for (struct fault *t = g->faults; t < g->faults + g->n_faults; t++)
    if (!strcmp(t->name, name) && t->times) {
      if (t->times > 0) t->times--, dirty = 1;
      return t;
    }
  return NULL;
}

static void perhaps_die(struct gpu *g) {
  for (struct fault *t = g->faults; t < g->faults + g->n_faults; t++)
    if (!strcmp(t->name, "kill") && t->times > 0 && --t->times == 0) {
      save();
      kill(getpid(), SIGKILL);
      pause();
    }
}

static _Thread_local double rested; /* up to when the operation of this thread has come, by the monotonic clock */

static void rest(double seconds) { /* until so long after that: what the library itself takes is part of an operation */
  struct timespec t;
  if (seconds <= 0) return;
  rested += seconds;
  t.tv_sec = (time_t)rested, t.tv_nsec = (long)((rested - (time_t)rested) * 1e9);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static struct profile *profile_by_id(struct gpu *g, uint id) {
  for (int i = 0; i < g->n_profiles; i++) if (g->profiles[i].id == id) return &g->profiles[i];
  return NULL;
}

static struct gi *gi_by_id(struct gpu *g, uint id) {
  for (int i = 0; i < g->n_gis; i++) if (g->gis[i].id == id) return &g->gis[i];
  return NULL;
}

/* Every call: begins with ENTER (state locked, and read if it has changed), ends with LEAVE (written if it is dirty). */
#define ENTER() do { if (!ready()) return UNINITIALIZED; load(); } while (0)
#define LEAVE(code) do { int c_ = (code); unload(); return c_; } while (0)
#define GPU(h) \
  struct handle *H = (h); \
  ENTER(); \
  struct gpu *g = H ? gpu_by(H->gpu) : NULL; \
  if (!g) LEAVE(INVALID); \
  if (fault(g, "lost")) LEAVE(LOST)
#define ROOT() do { if (fault(g, "no-permission")) LEAVE(NO_PERMISSION); } while (0)
#define MIG() do { if (!g->n_profiles || !g->mode) LEAVE(NOT_SUPPORTED); } while (0)

static int text(char *to, uint size, const char *from) {
  if (strlen(from) + 1 > size) return TOO_SMALL;
  strcpy(to, from);
  return OK;
}

/* The library, the system and devices */
int nvmlInitWithFlags(uint flags) { (void)flags; if (!getenv("FAKE_NVML")) return DRIVER_NOT_LOADED; initialised++; return OK; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { if (!initialised) return UNINITIALIZED; initialised--; return OK; }
const char *nvmlErrorString(int code) {
  switch (code) {
    case OK: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case TOO_SMALL: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case LOST: return "GPU is lost";
    case IN_USE: return "In use by another client";
    case INSUFFICIENT: return "Insufficient Resources";
    case VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
  }
}
int nvmlSystemGetDriverVersion(char *to, uint size) { ENTER(); LEAVE(text(to, size, S.driver)); }
int nvmlSystemGetNVMLVersion(char *to, uint size) { ENTER(); LEAVE(text(to, size, S.driver)); }
int nvmlDeviceGetCount_v2(uint *count) { ENTER(); *count = S.n; LEAVE(OK); }
int nvmlDeviceGetHandleByIndex_v2(uint index, void **device) {
  ENTER();
  if (index >= (uint)S.n) LEAVE(INVALID);
  *device = intern('G', S.gpus[index].uuid, 0, 0);
  LEAVE(OK);
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  ENTER();
  for (struct gpu *g = S.gpus; g < S.gpus + S.n; g++) {
    if (!strcmp(g->uuid, uuid)) { *device = intern('G', uuid, 0, 0); LEAVE(OK); }
    for (int i = 0; i < g->n_cis; i++)
      if (!strcmp(g->cis[i].uuid, uuid)) { *device = intern('M', g->uuid, g->cis[i].gi, g->cis[i].id); LEAVE(OK); }
  }
  LEAVE(NOT_FOUND);
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  ENTER();
  for (struct gpu *g = S.gpus; g < S.gpus + S.n; g++)
    if (!strcasecmp(g->bus, bus)) { *device = intern('G', g->uuid, 0, 0); LEAVE(OK); }
  LEAVE(NOT_FOUND);
}
int nvmlDeviceGetIndex(void *device, uint *index) { GPU(device); *index = g - S.gpus; LEAVE(OK); }
int nvmlDeviceGetMinorNumber(void *device, uint *number) { GPU(device); *number = g - S.gpus; LEAVE(OK); }
int nvmlDeviceGetName(void *device, char *to, uint size) { GPU(device); LEAVE(text(to, size, g->name)); }
int nvmlDeviceGetUUID(void *device, char *to, uint size) {
  GPU(device);
  if (H->kind == 'G') LEAVE(text(to, size, g->uuid));
  for (int i = 0; i < g->n_cis; i++)
    if (g->cis[i].gi == H->gi && g->cis[i].id == H->ci) LEAVE(text(to, size, g->cis[i].uuid));
  LEAVE(INVALID);
}
int nvmlDeviceGetPciInfo_v3(void *device, void *info) {
  struct { char legacy[16]; uint domain, bus, device, id, subsystem; char full[32]; } *to = info;
  GPU(device);
  memset(to, 0, sizeof *to);
  sscanf(g->bus, "%x:%x:%x", &to->domain, &to->bus, &to->device);
  snprintf(to->legacy, sizeof to->legacy, "%s", g->bus + 4);
  snprintf(to->full, sizeof to->full, "%s", g->bus);
  LEAVE(OK);
}
int nvmlDeviceGetMemoryInfo(void *device, void *info) {
  struct { u64 total, free, used; } *to = info;
  GPU(device);
  to->total = to->free = g->mib << 20, to->used = 0;
  LEAVE(OK);
}
int nvmlDeviceGetMigMode(void *device, uint *current, uint *pending) {
  GPU(device);
  if (!g->n_profiles) LEAVE(NOT_SUPPORTED);
  *current = g->mode, *pending = g->pending;
  LEAVE(OK);
}
int nvmlDeviceSetMigMode(void *device, uint mode, int *activation) {
  GPU(device);
  ROOT();
  if (!g->n_profiles) LEAVE(NOT_SUPPORTED);
  g->pending = mode, *activation = g->mode == mode ? OK : IN_USE;
  dirty = 1;
  LEAVE(OK);
}

/* GPU instances */
struct placement { uint start, size; };
struct profile_v1 { uint id, p2p, slices, instances, sm, copy, decoders, encoders, jpeg, ofa; u64 mib; };
struct profile_v2 { uint version, id, p2p, slices, instances, sm, copy, decoders, encoders, jpeg, ofa; u64 mib; char name[96]; };

static int describe(struct profile *p, struct profile_v2 *to) {
  if (!p) return NOT_SUPPORTED;
  if (to->version != 0x02000098) return VERSION_MISMATCH;
  *to = (struct profile_v2){.version = to->version, .id = p->id, .slices = p->slices, .instances = p->most, .sm = p->sm,
                            .copy = p->slices, .mib = p->mib};
  snprintf(to->name, sizeof to->name, "MIG %s", p->name);
  return OK;
}
static struct profile *profile_by_kind(struct gpu *g, uint kind) {
  for (int i = 0; i < g->n_profiles; i++) if (g->profiles[i].kind == kind) return &g->profiles[i];
  return NULL;
}
int nvmlDeviceGetGpuInstanceProfileInfoV(void *device, uint kind, struct profile_v2 *to) {
  GPU(device); MIG();
  LEAVE(describe(profile_by_kind(g, kind), to));
}
int nvmlDeviceGetGpuInstanceProfileInfoByIdV(void *device, uint id, struct profile_v2 *to) {
  GPU(device); MIG();
  LEAVE(describe(profile_by_id(g, id), to));
}
int nvmlDeviceGetGpuInstanceProfileInfo(void *device, uint kind, struct profile_v1 *to) {
  GPU(device); MIG();
  struct profile *p = profile_by_kind(g, kind);
  if (!p) LEAVE(NOT_SUPPORTED);
  *to = (struct profile_v1){.id = p->id, .slices = p->slices, .instances = p->most, .sm = p->sm, .copy = p->slices, .mib = p->mib};
  LEAVE(OK);
}
static int room(struct gpu *g, struct profile *p, uint start) {
  uint alike = 0;
  for (struct gi *i = g->gis; i < g->gis + g->n_gis; i++) {
    struct profile *other = profile_by_id(g, i->profile);
    alike += other == p;
    if (start < i->start + other->memory && i->start < start + p->memory) return 0;
  }
  return alike < p->most;
}
int nvmlDeviceGetGpuInstanceRemainingCapacity(void *device, uint id, uint *count) {
  GPU(device); MIG();
  struct profile *p = profile_by_id(g, id);
  if (!p) LEAVE(INVALID);
  *count = 0;
  uint free = 0;
  for (uint i = 0; i < p->count; i++)
    if (p->starts[i] >= free && room(g, p, p->starts[i])) ++*count, free = p->starts[i] + p->memory;
  LEAVE(OK);
}
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(void *device, uint id, struct placement *to, uint *count) {
  GPU(device); MIG();
  struct profile *p = profile_by_id(g, id);
  if (!p) LEAVE(INVALID);
  if (to)
    for (uint i = 0; i < p->count; i++) to[i] = (struct placement){p->starts[i], p->memory};
  *count = p->count;
  LEAVE(OK);
}

/* The first half of an operation: the driver of the GPU is taken, and half of the time passes. Returns its lock. */
static int first_half(struct handle *H, int create, uint profile, double share, double *half) {
  load();
  struct gpu *g = gpu_by(H->gpu);
  struct profile *p = g ? profile_by_id(g, profile) : NULL;
  struct fault *slow = g ? fault(g, "slow") : NULL;
  *half = p ? S.scale * share * (create ? p->create : p->destroy) / 2 + (slow ? slow->seconds / 2 : 0) : 0;
  if (slow) save();
  unload();
  int fd = locked(H->gpu);
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  rested = t.tv_sec + t.tv_nsec / 1e9;
  rest(*half);
  return fd;
}

static int create_gi(struct handle *H, uint id, const struct placement *wanted, void **made) {
  double half;
  if (!ready()) return UNINITIALIZED;
  int driver = first_half(H, 1, id, 0.7, &half), code = OK;
  load();
  struct gpu *g = gpu_by(H->gpu);
  struct profile *p = g ? profile_by_id(g, id) : NULL;
  uint start = 0;
  int legal = 0;
  for (uint i = 0; p && i < p->count; i++) {
    if (wanted ? p->starts[i] == wanted->start : room(g, p, p->starts[i])) legal = 1, start = p->starts[i];
    if (legal) break;
  }
  if (!g) code = INVALID;
  else if (fault(g, "lost")) code = LOST;
  else if (fault(g, "no-permission")) code = NO_PERMISSION;
  else if (!g->n_profiles || !g->mode) code = NOT_SUPPORTED;
  else if (!p || (wanted && (!legal || wanted->size != p->memory))) code = INVALID;
  else if (!legal || !room(g, p, start) || fault(g, "insufficient")) code = INSUFFICIENT;
  if (g) perhaps_die(g);
  if (code == OK) {
    /* Numbers tell nothing about places, and the same number comes again. */
    static const uint order[] = {5, 3, 9, 1, 13, 7, 11, 2, 4, 6, 8, 10, 12, 14};
    uint number = 0;
    for (int i = 0; i < 14 && !number; i++) if (!gi_by_id(g, order[i])) number = order[i];
    g->gis[g->n_gis++] = (struct gi){number, id, start, 0};
    char place[TEXT + 16];
    snprintf(place, sizeof place, "%s@%u", p->name, start);
    note("create", g, number, place);
    *made = intern('I', g->uuid, number, 0);
    perhaps_die(g);
  }
  save();
  unload();
  if (code == OK) rest(half);
  close(driver);
  return code;
}
int nvmlDeviceCreateGpuInstance(void *device, uint id, void **made) { return create_gi(device, id, NULL, made); }
int nvmlDeviceCreateGpuInstanceWithPlacement(void *device, uint id, const struct placement *wanted, void **made) {
  struct placement copy = *wanted; /* passed by value this crashes, as it does with the real library */
  return create_gi(device, id, &copy, made);
}
int nvmlGpuInstanceDestroy(void *instance) {
  struct handle *H = instance;
  double half;
  if (!ready()) return UNINITIALIZED;
  load();
  struct gpu *g = gpu_by(H->gpu);
  struct gi *i = g ? gi_by_id(g, H->gi) : NULL;
  uint profile = i ? i->profile : 0;
  unload();
  int driver = first_half(H, 0, profile, 0.7, &half), code = OK;
  load();
  g = gpu_by(H->gpu);
  i = g ? gi_by_id(g, H->gi) : NULL;
  int used = 0;
  for (int k = 0; g && k < g->n_cis; k++) used += g->cis[k].gi == H->gi;
  if (!g || !i) code = NOT_FOUND;
  else if (fault(g, "lost")) code = LOST;
  else if (fault(g, "no-permission")) code = NO_PERMISSION;
  else if (used || i->until > 0 || fault(g, "in-use")) code = IN_USE;
  if (g) perhaps_die(g);
  if (code == OK) {
    struct fault *linger = fault(g, "linger");
    note("destroy", g, i->id, profile_by_id(g, i->profile)->name);
    if (linger) i->until = now() + linger->seconds;
    else *i = g->gis[--g->n_gis];
    perhaps_die(g);
  }
  save();
  unload();
  if (code == OK) rest(half);
  close(driver);
  return code;
}
int nvmlDeviceGetGpuInstances(void *device, uint id, void **to, uint *count) {
  GPU(device); ROOT(); MIG();
  *count = 0;
  for (int i = 0; i < g->n_gis; i++)
    if (g->gis[i].profile == id) to[(*count)++] = intern('I', g->uuid, g->gis[i].id, 0);
  LEAVE(OK);
}
int nvmlDeviceGetGpuInstanceById(void *device, uint id, void **to) {
  GPU(device); ROOT(); MIG();
  if (!gi_by_id(g, id)) LEAVE(NOT_FOUND);
  *to = intern('I', g->uuid, id, 0);
  LEAVE(OK);
}
int nvmlGpuInstanceGetInfo(void *instance, void *info) {
  struct { void *device; uint id, profile; struct placement place; } *to = info;
  GPU(instance);
  struct gi *i = gi_by_id(g, H->gi);
  if (!i) LEAVE(NOT_FOUND);
  to->device = intern('G', g->uuid, 0, 0), to->id = i->id, to->profile = i->profile;
  to->place = (struct placement){i->start, profile_by_id(g, i->profile)->memory};
  LEAVE(OK);
}

/* Compute instances: the number of a profile is its place in the list of NVML */
static const uint SIZES[] = {1, 2, 3, 4, 7, 8, 6};
static int left(struct gpu *g, uint gi) {
  int slices = profile_by_id(g, gi_by_id(g, gi)->profile)->slices;
  for (int i = 0; i < g->n_cis; i++) if (g->cis[i].gi == gi) slices -= SIZES[g->cis[i].profile];
  return slices;
}
#define INSTANCE() \
  struct gi *i = gi_by_id(g, H->gi); \
  if (!i || i->until > 0) LEAVE(NOT_FOUND)
int nvmlGpuInstanceGetComputeInstanceProfileInfoV(void *instance, uint kind, uint engine, void *info) {
  struct { uint version, id, slices, instances, sm, rest[5]; char name[96]; } *to = info;
  GPU(instance); INSTANCE();
  struct profile *p = profile_by_id(g, i->profile);
  if (engine || kind > 6 || SIZES[kind] > p->slices) LEAVE(NOT_SUPPORTED);
  if (to->version != 0x02000088) LEAVE(VERSION_MISMATCH);
  to->id = kind, to->slices = SIZES[kind], to->instances = p->slices / SIZES[kind], to->sm = p->sm * SIZES[kind] / p->slices;
  if (SIZES[kind] == p->slices) snprintf(to->name, sizeof to->name, "MIG %s", p->name);
  else snprintf(to->name, sizeof to->name, "MIG %uc.%s", SIZES[kind], p->name);
  LEAVE(OK);
}
int nvmlGpuInstanceGetComputeInstanceProfileInfo(void *instance, uint kind, uint engine, uint *to) {
  GPU(instance); INSTANCE();
  struct profile *p = profile_by_id(g, i->profile);
  if (engine || kind > 6 || SIZES[kind] > p->slices) LEAVE(NOT_SUPPORTED);
  memset(to, 0, 9 * sizeof *to);
  to[0] = kind, to[1] = SIZES[kind], to[2] = p->slices / SIZES[kind], to[3] = p->sm * SIZES[kind] / p->slices;
  LEAVE(OK);
}
int nvmlGpuInstanceGetComputeInstanceRemainingCapacity(void *instance, uint profile, uint *count) {
  GPU(instance); INSTANCE();
  if (profile > 6) LEAVE(INVALID);
  *count = left(g, H->gi) / SIZES[profile];
  LEAVE(OK);
}
int nvmlGpuInstanceCreateComputeInstance(void *instance, uint profile, void **made) {
  struct handle *H = instance;
  double half;
  if (!ready()) return UNINITIALIZED;
  load();
  struct gpu *g = gpu_by(H->gpu);
  struct gi *i = g ? gi_by_id(g, H->gi) : NULL;
  uint of = i ? i->profile : 0;
  unload();
  int driver = first_half(H, 1, of, 0.3, &half), code = OK;
  load();
  g = gpu_by(H->gpu);
  i = g ? gi_by_id(g, H->gi) : NULL;
  if (!g || !i || i->until > 0) code = NOT_FOUND;
  else if (fault(g, "no-permission")) code = NO_PERMISSION;
  else if (profile > 6) code = INVALID;
  else if (fault(g, "no-compute") || left(g, H->gi) < (int)SIZES[profile]) code = INSUFFICIENT;
  if (g) perhaps_die(g);
  if (code == OK) {
    uint number = 0;
    for (int k = 0; k < g->n_cis; k++)
      if (g->cis[k].gi == H->gi && g->cis[k].id == number) number++, k = -1;
    struct ci *c = &g->cis[g->n_cis++];
    *c = (struct ci){H->gi, number, profile, ""};
    u64 hash = 14695981039346656037ULL;
    char seed[3 * TEXT];
    snprintf(seed, sizeof seed, "%s/%u/%u/%d", g->uuid, H->gi, number, S.same ? 0 : ++S.made);
    for (char *s = seed; *s; s++) hash = (hash ^ (unsigned char)*s) * 1099511628211ULL;
    u64 other = hash * 0x9E3779B97F4A7C15ULL;
    snprintf(c->uuid, TEXT, "MIG-%08llx-%04llx-5%03llx-8%03llx-%012llx", hash >> 32, hash >> 16 & 0xffff, hash & 0xfff,
             other >> 52, other & 0xffffffffffffULL);
    note("compute", g, H->gi, c->uuid);
    *made = intern('C', g->uuid, H->gi, number);
    perhaps_die(g);
  }
  save();
  unload();
  if (code == OK) rest(half);
  close(driver);
  return code;
}
int nvmlComputeInstanceDestroy(void *instance) {
  struct handle *H = instance;
  double half;
  if (!ready()) return UNINITIALIZED;
  load();
  struct gpu *g = gpu_by(H->gpu);
  struct gi *i = g ? gi_by_id(g, H->gi) : NULL;
  uint of = i ? i->profile : 0;
  unload();
  int driver = first_half(H, 0, of, 0.3, &half), code = NOT_FOUND;
  load();
  g = gpu_by(H->gpu);
  for (int k = 0; g && k < g->n_cis; k++)
    if (g->cis[k].gi == H->gi && g->cis[k].id == H->ci) {
      int used = 0;
      for (int j = 0; j < g->n_processes; j++) used += g->processes[j].gi == H->gi && g->processes[j].ci == H->ci;
      code = fault(g, "no-permission") ? NO_PERMISSION : used || fault(g, "in-use") ? IN_USE : OK;
      perhaps_die(g);
      if (code == OK) {
        note("discompute", g, H->gi, g->cis[k].uuid);
        drop_ci(g, k);
        perhaps_die(g);
      }
      break;
    }
  save();
  unload();
  if (code == OK) rest(half);
  close(driver);
  return code;
}
int nvmlGpuInstanceGetComputeInstances(void *instance, uint profile, void **to, uint *count) {
  GPU(instance); ROOT(); INSTANCE();
  *count = 0;
  for (int k = 0; k < g->n_cis; k++)
    if (g->cis[k].gi == H->gi && g->cis[k].profile == profile) to[(*count)++] = intern('C', g->uuid, H->gi, g->cis[k].id);
  LEAVE(OK);
}
int nvmlGpuInstanceGetComputeInstanceById(void *instance, uint id, void **to) {
  GPU(instance); ROOT(); INSTANCE();
  for (int k = 0; k < g->n_cis; k++)
    if (g->cis[k].gi == H->gi && g->cis[k].id == id) { *to = intern('C', g->uuid, H->gi, id); LEAVE(OK); }
  LEAVE(NOT_FOUND);
}
int nvmlComputeInstanceGetInfo_v2(void *instance, void *info) {
  struct { void *device, *gi; uint id, profile; struct placement place; } *to = info;
  GPU(instance);
  for (int k = 0; k < g->n_cis; k++)
    if (g->cis[k].gi == H->gi && g->cis[k].id == H->ci) {
      to->device = intern('M', g->uuid, H->gi, H->ci), to->gi = intern('I', g->uuid, H->gi, 0);
      to->id = H->ci, to->profile = g->cis[k].profile, to->place = (struct placement){0, SIZES[to->profile]};
      LEAVE(OK);
    }
  LEAVE(NOT_FOUND);
}

/* MIG devices: the compute instances of a GPU by the number of their GPU instance */
static int by_number(const void *one, const void *two) {
  const struct ci *a = one, *b = two;
  return a->gi != b->gi ? (int)a->gi - (int)b->gi : (int)a->id - (int)b->id;
}
int nvmlDeviceIsMigDeviceHandle(void *device, uint *answer) { GPU(device); *answer = H->kind == 'M'; LEAVE(OK); }
int nvmlDeviceGetMaxMigDeviceCount(void *device, uint *count) {
  GPU(device);
  *count = 0;
  for (int i = 0; i < g->n_profiles; i++) if (g->profiles[i].slices > *count) *count = g->profiles[i].slices;
  LEAVE(OK);
}
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, uint index, void **to) {
  GPU(device); MIG();
  qsort(g->cis, g->n_cis, sizeof *g->cis, by_number);
  if (index >= (uint)g->n_cis) LEAVE(NOT_FOUND);
  *to = intern('M', g->uuid, g->cis[index].gi, g->cis[index].id);
  LEAVE(OK);
}
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **to) {
  GPU(device);
  *to = intern('G', g->uuid, 0, 0);
  LEAVE(H->kind == 'M' ? OK : INVALID);
}
int nvmlDeviceGetGpuInstanceId(void *device, uint *id) { GPU(device); *id = H->gi; LEAVE(H->kind == 'M' ? OK : INVALID); }
int nvmlDeviceGetComputeInstanceId(void *device, uint *id) { GPU(device); *id = H->ci; LEAVE(H->kind == 'M' ? OK : INVALID); }
int nvmlDeviceGetAttributes_v2(void *device, void *info) {
  struct { uint sm, rest[5], slices, compute; u64 mib; } *to = info;
  GPU(device);
  struct gi *i = gi_by_id(g, H->gi);
  if (H->kind != 'M' || !i) LEAVE(INVALID);
  struct profile *p = profile_by_id(g, i->profile);
  memset(to, 0, sizeof *to);
  to->sm = p->sm, to->slices = to->compute = p->slices, to->mib = p->mib;
  LEAVE(OK);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, uint *count, void *info) {
  struct { uint pid; u64 bytes; uint gi, ci; } *to = info;
  GPU(device);
  uint found = 0;
  for (int k = 0; k < g->n_processes; k++) {
    struct process *p = &g->processes[k];
    if (H->kind == 'M' && (p->gi != H->gi || p->ci != H->ci)) continue;
    if (found < *count && to) to[found].pid = p->pid, to[found].bytes = p->bytes, to[found].gi = p->gi, to[found].ci = p->ci;
    found++;
  }
  int small = found > *count;
  *count = found;
  LEAVE(small ? TOO_SMALL : OK);
}
