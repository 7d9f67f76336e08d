/* Cold: once for each task and stream, and again when it becomes another. So by protobuf-c. */
#include "daemon/encode/task.h"

#include <assert.h>
#include <string.h>

#include "daemon/base/printable.h"
#include "daemon/model/container.h"
#include "proto/perfd.pb-c.h"

static ProtobufCBinaryData text_bytes(const Text *text) {
        return (ProtobufCBinaryData){ .len = text ? text->length : 0, .data = text ? (uint8_t *)text->bytes : NULL };
}

static void fill_process(const Process *p, ContainerName *name, Perfd__V1__Process *ret) {
        *ret = (Perfd__V1__Process)PERFD__V1__PROCESS__INIT;
        ret->executable = text_bytes(p->executable);
        ret->parent = p->parent;
        ret->known_uid_case = p->has_uid ? PERFD__V1__PROCESS__KNOWN_UID_UID : PERFD__V1__PROCESS__KNOWN_UID__NOT_SET;
        ret->uid = p->uid;
        ret->start = p->start;
        ret->cgroup = text_bytes(p->cgroup);
        ret->cgroup_id = p->cgroup_id;
        if (!p->cgroup)
                return;
        container_name_of(p->cgroup->bytes, name);
        utf8_mend(name->id);
        utf8_mend(name->pod_uid);
        utf8_mend(name->unit);
        ret->container = name->id;
        ret->runtime = (char *)(name->runtime ? name->runtime : "");
        ret->pod_uid = name->pod_uid;
        ret->unit = name->unit;
}

size_t task_encode(const Task *task, bool with_process, uint8_t to[static TASK_ENCODED_MAX]) {
        Perfd__V1__Task message = PERFD__V1__TASK__INIT, *messages[] = { &message };
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Perfd__V1__Process process;
        ContainerName name;

        message.pid = task->process->pid;
        message.tid = task->tid;
        message.comm = (ProtobufCBinaryData){ .len = strnlen(task->comm, COMM_SIZE), .data = (uint8_t *)task->comm };
        message.since = task->since;
        if (with_process) {
                fill_process(task->process, &name, &process);
                message.process = &process;
        }
        packet.tasks = messages;
        packet.n_tasks = 1;
        assert(perfd__v1__packet__get_packed_size(&packet) <= TASK_ENCODED_MAX);
        return perfd__v1__packet__pack(&packet, to);
}
