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
 *     process GI CI PID BYTES (0: of graphics)
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

static struct ci *ci_of(struct gpu *g, const struct handle *H) {
  for (struct ci *c = g->cis; c < g->cis + g->n_cis; c++) if (c->gi == H->gi && c->id == H->ci) return c;
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
int nvmlShutdown(void) { if (!initialised) return UNINITIALIZED; initialised--; return OK; }
const char *nvmlErrorString(int code) {
  static const char *const texts[] = {
    [OK] = "Success", [UNINITIALIZED] = "Uninitialized", [INVALID] = "Invalid Argument", [NOT_SUPPORTED] = "Not Supported",
    [NO_PERMISSION] = "Insufficient Permissions", [NOT_FOUND] = "Not Found", [TOO_SMALL] = "Insufficient Size",
    [DRIVER_NOT_LOADED] = "Driver Not Loaded", [LOST] = "GPU is lost", [IN_USE] = "In use by another client",
    [INSUFFICIENT] = "Insufficient Resources", [VERSION_MISMATCH] = "Argument version mismatch" };
  return code >= OK && code <= VERSION_MISMATCH && texts[code] ? texts[code] : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char *to, uint size) { ENTER(); LEAVE(text(to, size, S.driver)); }
int nvmlDeviceGetCount_v2(uint *count) { ENTER(); *count = S.n; LEAVE(OK); }
int nvmlDeviceGetHandleByIndex_v2(uint index, void **device) {
  ENTER();
  if (index >= (uint)S.n) LEAVE(INVALID);
  *device = intern('G', S.gpus[index].uuid, 0, 0);
  LEAVE(OK);
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  ENTER();
  if (!gpu_by(uuid)) LEAVE(NOT_FOUND);
  *device = intern('G', uuid, 0, 0);
  LEAVE(OK);
}
int nvmlDeviceGetName(void *device, char *to, uint size) { GPU(device); LEAVE(text(to, size, g->name)); }
int nvmlDeviceGetUUID(void *device, char *to, uint size) {
  GPU(device);
  struct ci *c = ci_of(g, H);
  LEAVE(H->kind == 'G' ? text(to, size, g->uuid) : c ? text(to, size, c->uuid) : INVALID);
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
int nvmlDeviceGetMigMode(void *device, uint *current, uint *pending) {
  GPU(device);
  if (!g->n_profiles) LEAVE(NOT_SUPPORTED);
  *current = g->mode, *pending = g->pending;
  LEAVE(OK);
}

/* GPU instances */
struct placement { uint start, size; };
struct profile_v2 { uint version, id, p2p, slices, instances, sm, copy, decoders, encoders, jpeg, ofa; u64 mib; char name[96]; };

int nvmlDeviceGetGpuInstanceProfileInfoV(void *device, uint kind, struct profile_v2 *to) {
  GPU(device); MIG();
  struct profile *p = g->profiles, *end = p + g->n_profiles;
  while (p < end && p->kind != kind) p++;
  if (p == end) LEAVE(NOT_SUPPORTED);
  if (to->version != 0x02000098) LEAVE(VERSION_MISMATCH);
  *to = (struct profile_v2){.version = to->version, .id = p->id, .slices = p->slices, .instances = p->most, .sm = p->sm,
                            .copy = p->slices, .mib = p->mib};
  snprintf(to->name, sizeof to->name, "MIG %s", p->name);
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
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(void *device, uint id, struct placement *to, uint *count) {
  GPU(device); MIG();
  struct profile *p = profile_by_id(g, id);
  if (!p) LEAVE(INVALID);
  if (to)
    for (uint i = 0; i < p->count; i++) to[i] = (struct placement){p->starts[i], p->memory};
  *count = p->count;
  LEAVE(OK);
}

/* An operation on an instance: what it is about, and what there is of that when its turn has come. */
struct order {
  struct handle *handle;
  uint profile; const struct placement *at; void **made; /* of a creation */
  struct gi *gi; struct ci *ci;
};

/* Half of the share of the time of its profile passes, then something is done unless it is refused, then the other half.
 * Meanwhile the driver of the GPU is taken. The process may die before and after what is done. */
static int operate(struct order o, int create, double share, int (*refusal)(struct gpu *, struct order *),
                   void (*act)(struct gpu *, struct order *)) {
  if (!ready()) return UNINITIALIZED;
  load();
  struct gpu *g = gpu_by(o.handle->gpu);
  o.gi = g ? gi_by_id(g, o.handle->gi) : NULL;
  struct profile *p = g ? profile_by_id(g, o.gi ? o.gi->profile : o.profile) : NULL;
  struct fault *slow = g ? fault(g, "slow") : NULL;
  double half = p ? S.scale * share * (create ? p->create : p->destroy) / 2 + (slow ? slow->seconds / 2 : 0) : 0;
  unload();
  int driver = locked(o.handle->gpu);
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  rested = t.tv_sec + t.tv_nsec / 1e9;
  rest(half);
  load();
  g = gpu_by(o.handle->gpu);
  o.gi = g ? gi_by_id(g, o.handle->gi) : NULL;
  int code = !g ? INVALID : fault(g, "lost") ? LOST : fault(g, "no-permission") ? NO_PERMISSION : refusal(g, &o);
  if (g) perhaps_die(g);
  if (code == OK) {
    act(g, &o);
    perhaps_die(g);
  }
  save();
  unload();
  if (code == OK) rest(half);
  close(driver);
  return code;
}

static int no_room(struct gpu *g, struct order *o) {
  struct profile *p = profile_by_id(g, o->profile);
  int legal = 0;
  for (uint i = 0; p && i < p->count; i++) legal |= p->starts[i] == o->at->start;
  if (!g->n_profiles || !g->mode) return NOT_SUPPORTED;
  if (!legal || o->at->size != p->memory) return INVALID;
  return !room(g, p, o->at->start) || fault(g, "insufficient") ? INSUFFICIENT : OK;
}
static void create_gi(struct gpu *g, struct order *o) {
  /* Numbers tell nothing about places, and the same number comes again. */
  static const uint order[] = {5, 3, 9, 1, 13, 7, 11, 2, 4, 6, 8, 10, 12, 14};
  uint number = 0;
  for (int i = 0; i < 14 && !number; i++) if (!gi_by_id(g, order[i])) number = order[i];
  g->gis[g->n_gis++] = (struct gi){number, o->profile, o->at->start, 0};
  char place[TEXT + 16];
  snprintf(place, sizeof place, "%s@%u", profile_by_id(g, o->profile)->name, o->at->start);
  note("create", g, number, place);
  *o->made = intern('I', g->uuid, number, 0);
}
int nvmlDeviceCreateGpuInstanceWithPlacement(void *device, uint id, const struct placement *wanted, void **made) {
  struct placement copy = *wanted; /* passed by value this crashes, as it does with the real library */
  return operate((struct order){.handle = device, .profile = id, .at = &copy, .made = made}, 1, 0.7, no_room, create_gi);
}

static int gi_in_use(struct gpu *g, struct order *o) {
  int used = 0;
  for (int k = 0; k < g->n_cis; k++) used += g->cis[k].gi == o->handle->gi;
  if (!o->gi) return NOT_FOUND;
  return used || o->gi->until > 0 || fault(g, "in-use") ? IN_USE : OK;
}
static void destroy_gi(struct gpu *g, struct order *o) {
  struct fault *linger = fault(g, "linger");
  note("destroy", g, o->gi->id, profile_by_id(g, o->gi->profile)->name);
  if (linger) o->gi->until = now() + linger->seconds;
  else *o->gi = g->gis[--g->n_gis];
}
int nvmlGpuInstanceDestroy(void *instance) {
  return operate((struct order){.handle = instance}, 0, 0.7, gi_in_use, destroy_gi);
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
static int no_compute(struct gpu *g, struct order *o) {
  if (!o->gi || o->gi->until > 0) return NOT_FOUND;
  if (o->profile > 6) return INVALID;
  return fault(g, "no-compute") || left(g, o->gi->id) < (int)SIZES[o->profile] ? INSUFFICIENT : OK;
}
static void create_ci(struct gpu *g, struct order *o) {
  uint number = 0;
  for (int k = 0; k < g->n_cis; k++)
    if (g->cis[k].gi == o->gi->id && g->cis[k].id == number) number++, k = -1;
  struct ci *c = &g->cis[g->n_cis++];
  *c = (struct ci){o->gi->id, number, o->profile, ""};
  u64 hash = 14695981039346656037ULL;
  char seed[3 * TEXT];
  snprintf(seed, sizeof seed, "%s/%u/%u/%d", g->uuid, o->gi->id, number, S.same ? 0 : ++S.made);
  for (char *s = seed; *s; s++) hash = (hash ^ (unsigned char)*s) * 1099511628211ULL;
  u64 other = hash * 0x9E3779B97F4A7C15ULL;
  snprintf(c->uuid, TEXT, "MIG-%08llx-%04llx-5%03llx-8%03llx-%012llx", hash >> 32, hash >> 16 & 0xffff, hash & 0xfff,
           other >> 52, other & 0xffffffffffffULL);
  note("compute", g, o->gi->id, c->uuid);
  *o->made = intern('C', g->uuid, o->gi->id, number);
}
int nvmlGpuInstanceCreateComputeInstance(void *instance, uint profile, void **made) {
  return operate((struct order){.handle = instance, .profile = profile, .made = made}, 1, 0.3, no_compute, create_ci);
}

static int ci_in_use(struct gpu *g, struct order *o) {
  int used = 0;
  o->ci = ci_of(g, o->handle);
  for (int j = 0; j < g->n_processes; j++) used += g->processes[j].gi == o->handle->gi && g->processes[j].ci == o->handle->ci;
  return !o->ci ? NOT_FOUND : used || fault(g, "in-use") ? IN_USE : OK;
}
static void destroy_ci(struct gpu *g, struct order *o) {
  note("discompute", g, o->ci->gi, o->ci->uuid);
  *o->ci = g->cis[--g->n_cis];
}
int nvmlComputeInstanceDestroy(void *instance) {
  return operate((struct order){.handle = instance}, 0, 0.3, ci_in_use, destroy_ci);
}
int nvmlGpuInstanceGetComputeInstances(void *instance, uint profile, void **to, uint *count) {
  GPU(instance); ROOT(); INSTANCE();
  *count = 0;
  for (int k = 0; k < g->n_cis; k++)
    if (g->cis[k].gi == H->gi && g->cis[k].profile == profile) to[(*count)++] = intern('C', g->uuid, H->gi, g->cis[k].id);
  LEAVE(OK);
}
int nvmlComputeInstanceGetInfo_v2(void *instance, void *info) {
  struct { void *device, *gi; uint id, profile; struct placement place; } *to = info;
  GPU(instance);
  struct ci *c = ci_of(g, H);
  if (!c) LEAVE(NOT_FOUND);
  to->device = intern('M', g->uuid, c->gi, c->id), to->gi = intern('I', g->uuid, c->gi, 0);
  to->id = c->id, to->profile = c->profile, to->place = (struct placement){0, SIZES[c->profile]};
  LEAVE(OK);
}
static int running(void *device, uint *count, void *info, int graphics) {
  struct { uint pid; u64 bytes; uint gi, ci; } *to = info;
  GPU(device);
  uint found = 0;
  for (int k = 0; k < g->n_processes; k++) {
    struct process *p = &g->processes[k];
    if (graphics != !p->bytes) continue;
    if (H->kind == 'M' && (p->gi != H->gi || p->ci != H->ci)) continue;
    if (found < *count && to) to[found].pid = p->pid, to[found].bytes = p->bytes, to[found].gi = p->gi, to[found].ci = p->ci;
    found++;
  }
  int small = found > *count;
  *count = found;
  LEAVE(small ? TOO_SMALL : OK);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, uint *count, void *info) { return running(device, count, info, 0); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, uint *count, void *info) { return running(device, count, info, 1); }
