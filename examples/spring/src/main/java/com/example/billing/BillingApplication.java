package com.example.billing;

import io.evenlag.PlanWatcher;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.kafka.autoconfigure.DefaultKafkaConsumerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.support.KafkaHeaders;
import org.springframework.messaging.handler.annotation.Header;

/** Processes orders; application.properties makes its consumers follow the published plan. */
@SpringBootApplication
public class BillingApplication {
    private static final Logger LOG = LoggerFactory.getLogger(BillingApplication.class);

    public static void main(String[] arguments) {
        SpringApplication.run(BillingApplication.class, arguments);
    }

    /** Wraps each consumer that Spring creates, so that it asks for a rebalance when a new plan is published. */
    @Bean
    DefaultKafkaConsumerFactoryCustomizer planWatcher() {
        return factory -> factory.addPostProcessor(PlanWatcher::watching);
    }

    @KafkaListener(topics = "${billing.topic}")
    void process(
        String order,
        @Header(KafkaHeaders.RECEIVED_PARTITION) int partition,
        @Header(KafkaHeaders.OFFSET) long offset
    ) {
        LOG.info("partition {}, offset {}: {}", partition, offset, order);
    }
}
